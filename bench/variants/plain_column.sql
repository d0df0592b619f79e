-- The same that writes a token too, which nobody compares.
ALTER TABLE target ADD fence bigint NOT NULL DEFAULT 5;
-- each
UPDATE target SET v = :v, fence = :token WHERE id = :id;
