-- lockfence, constant fence: one resource for the table, no row trigger.
SELECT lockfence.attach('target', :'variant');
-- each
BEGIN;
SELECT lockfence.present('constant', :token);
UPDATE target SET v = :v WHERE id = :id;
COMMIT;
