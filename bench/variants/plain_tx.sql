-- An UPDATE without a fence, with one more round trip in its transaction: what presenting a token is compared with.
-- each
BEGIN;
SELECT 1;
UPDATE target SET v = :v WHERE id = :id;
COMMIT;
