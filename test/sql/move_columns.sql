-- A row that moves between partitions whose fences differ: each takes for proof what the UPDATE has put into its own
-- token column, and what was accepted for another resource is none.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_move_columns;
SET search_path = test_move_columns;

-- Two token columns, and a fence without one; the columns are numbered differently.
CREATE TABLE task (id integer, place text, note text, ta lockfence.fence_token, tb lockfence.fence_token) PARTITION BY LIST (place);
CREATE TABLE task_a PARTITION OF task FOR VALUES IN ('a');
CREATE TABLE task_b (gone integer, tb lockfence.fence_token, ta lockfence.fence_token, id integer, note text, place text);
ALTER TABLE task_b DROP COLUMN gone;
ALTER TABLE task ATTACH PARTITION task_b FOR VALUES IN ('b');
CREATE TABLE task_c PARTITION OF task FOR VALUES IN ('c');
SELECT lockfence.attach('task_a', 'columns:a-{id}', 'ta'), lockfence.attach('task_b', 'columns:b-{id}', 'tb'),
	lockfence.attach('task_c', 'columns:c-{id}');
CREATE VIEW tasks AS SELECT tableoid::regclass AS partition, id, note, ta, tb FROM task ORDER BY id;
SELECT lockfence.present('columns:b-1', 40), lockfence.present('columns:c-3', 5);
INSERT INTO task VALUES (1, 'a', 'new', 43, NULL), (2, 'a', 'new', 43, 99);
BEGIN;
SELECT lockfence.present('columns:c-3', 5);
INSERT INTO task VALUES (3, 'c', 'new');
COMMIT;

-- The token of the one is no proof to the other, nor is what the row brings along.
UPDATE task SET place = 'b', ta = 43 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE task SET place = 'b', ta = 43 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
UPDATE task SET place = 'b', ta = 43, tb = NULL WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
-- Each its own: both count, and a stale one is refused.
UPDATE task SET place = 'b', ta = 43, tb = 39 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE task SET place = 'b', ta = 43, tb = 41 WHERE id = 1;
UPDATE task SET place = 'a', ta = 44, tb = 41 WHERE id = 1;
-- From a fence without a column; to one, by what was presented.
BEGIN;
SELECT lockfence.present('columns:c-3', 5);
UPDATE task SET place = 'b', tb = 60 WHERE id = 3;
COMMIT;
BEGIN;
SELECT lockfence.present('columns:c-3', 6);
UPDATE task SET place = 'c', tb = 60 WHERE id = 3;
COMMIT;
SELECT * FROM tasks;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'columns:%' ORDER BY resource;

-- What was accepted for a name is not for the row itself; for the row it is, whichever column has it.
CREATE TABLE deal (id integer, place text, ta lockfence.fence_token, tb lockfence.fence_token) PARTITION BY LIST (place);
CREATE TABLE deal_named PARTITION OF deal FOR VALUES IN ('named');
CREATE TABLE deal_row PARTITION OF deal FOR VALUES IN ('row');
CREATE TABLE deal_other PARTITION OF deal FOR VALUES IN ('other');
CREATE TABLE deal_once PARTITION OF deal FOR VALUES IN ('once');
SELECT lockfence.attach('deal_named', 'columns:deal-{id}'), lockfence.attach('deal_row', token_column => 'ta'),
	lockfence.attach('deal_other', token_column => 'tb'), lockfence.attach('deal_once', token_column => 'tb', repeat => 'reject');
BEGIN;
SELECT lockfence.present('columns:deal-1', 7);
INSERT INTO deal VALUES (1, 'named');
UPDATE deal SET place = 'row' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT lockfence.present('columns:deal-1', 7);
INSERT INTO deal VALUES (1, 'named');
UPDATE deal SET place = 'row', ta = 8 WHERE id = 1;
COMMIT;
UPDATE deal SET place = 'other', ta = 9 WHERE id = 1;
SELECT * FROM deal;
UPDATE deal SET place = 'row', tb = 9, ta = 9 WHERE id = 1;
-- The mark that it brings along is what was there before the UPDATE.
UPDATE deal SET place = 'other', ta = 9, tb = 8 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE deal SET place = 'other', ta = 9, tb = 10 WHERE id = 1;
-- A single-use token that the row bears since before is used up, in whichever column the other fence has its own.
UPDATE deal SET place = 'once', tb = 10 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE deal SET place = 'once', tb = 11 WHERE id = 1;
BEGIN;
UPDATE deal SET place = 'other', tb = 12 WHERE id = 1;
UPDATE deal SET place = 'once', tb = 12 WHERE id = 1;
COMMIT;
BEGIN;
SELECT lockfence.present(13);
UPDATE deal SET place = 'row' WHERE id = 1;
COMMIT;
UPDATE deal SET place = 'once', ta = 13, tb = 13 WHERE id = 1;
UPDATE deal SET place = 'row', ta = 14, tb = 14 WHERE id = 1;
UPDATE deal SET place = 'once', ta = 14, tb = 14 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE deal SET place = 'once', ta = 14, tb = 15 WHERE id = 1;
SELECT * FROM deal;

DROP SCHEMA test_move_columns CASCADE;
