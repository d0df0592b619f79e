-- The limit: an UPDATE without a fence.
-- each
UPDATE target SET v = :v WHERE id = :id;
