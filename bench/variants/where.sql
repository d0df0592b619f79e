-- By hand: the token is compared in the WHERE clause of every statement.  Zero rows: stale, or no such row.
ALTER TABLE target ADD fence bigint NOT NULL DEFAULT 5;
-- each
UPDATE target SET v = :v, fence = :token WHERE id = :id AND fence <= :token;
