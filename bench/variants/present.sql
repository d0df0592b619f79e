-- lockfence, named fence: the token is presented first, as documented.
SELECT lockfence.attach('target', :'variant' || ':batch-{batch}');
-- each
BEGIN;
SELECT lockfence.present(:resource, :token);
UPDATE target SET v = :v WHERE id = :id;
COMMIT;
