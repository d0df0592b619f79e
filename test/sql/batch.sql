-- A batch of rows under several locks: one stale row fails it, and the detail tells how far it came.
\set SHOW_CONTEXT never
CREATE SCHEMA test_batch;
SET search_path = test_batch;
\pset tuples_only on
CREATE TABLE task (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('task', 'batch:{id}', 'fence');
CREATE TABLE job (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('job');
INSERT INTO task VALUES (1, 'taken', 7), (2, 'taken', 7), (3, 'taken', 9);
INSERT INTO job SELECT * FROM task;
-- one row, two rows, none; in an earlier statement, too
DELETE FROM task WHERE id > 9;
UPDATE task SET fence = 8 WHERE id = 3;
UPDATE task SET fence = 8 WHERE id <> 2;
UPDATE task SET fence = 8;
BEGIN;
UPDATE task SET fence = 8 WHERE id = 1;
UPDATE task SET fence = 8 WHERE id = 2;
SELECT lockfence.present('batch:3', 8);
ROLLBACK;
UPDATE job SET fence = 8;
-- the count is of one transaction
UPDATE task SET fence = 8 WHERE id = 3;
-- the rows that are still the holder's are written, the others left
UPDATE task SET state = 'done', fence = 8 WHERE lockfence.is_current(lockfence.resource_of('task', task), 8) RETURNING id;
UPDATE job SET state = 'done', fence = 8 WHERE fence <= 8 RETURNING id;
SELECT * FROM task ORDER BY id;
DROP SCHEMA test_batch CASCADE;
