-- The same, and it writes a token, which is compared with nothing.
ALTER TABLE target ADD fence bigint NOT NULL DEFAULT 5;
-- each
UPDATE target SET v = :v, fence = :token WHERE id = :id;
