-- lockfence, constant fence: the same with an ambient token, which the statement's trigger checks.
SELECT lockfence.attach('target', :'variant');
-- each
BEGIN;
SELECT lockfence.present(:token);
UPDATE target SET v = :v WHERE id = :id;
COMMIT;
