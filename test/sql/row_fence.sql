-- Row fences: every row is its own resource and keeps its mark in the token column.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_row_fence;
SET search_path = test_row_fence;
CREATE TABLE job (id integer PRIMARY KEY, note text);
INSERT INTO job VALUES (1, 'old'), (2, 'old'), (3, 'old'), (4, 'old');
SELECT lockfence.attach('job');

SELECT target, kind, resource, token_column, accept, enforcement, missing, repeat, validator, inherited
FROM lockfence.fences WHERE target = 'job'::regclass;
SELECT column_name, domain_schema, domain_name, is_nullable, column_default
FROM information_schema.columns WHERE table_schema = 'test_row_fence' AND column_name = 'fence';

-- A row from before the fence has no mark: the first token is taken, and any valid one is.
UPDATE job SET note = 'set', fence = 10 WHERE id = 1;
-- Equal is the same holder, higher a newer one.
UPDATE job SET note = 'equal', fence = 10 WHERE id = 1;
UPDATE job SET note = 'higher', fence = 12 WHERE id = 1;
SELECT * FROM job WHERE id = 1;
-- Lower is stale.
UPDATE job SET note = 'stale', fence = 11 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
-- The marks are of rows: another row takes a lower token.
UPDATE job SET note = 'set', fence = 3 WHERE id = 2;

-- inherited token: an UPDATE that omits the column does not hold the lock because the row has a token
UPDATE job SET note = 'inherited' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE job SET fence = fence WHERE id = 1;
UPDATE job SET note = 'null', fence = NULL WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE job SET note = 'zero', fence = 0 WHERE id = 1;
UPDATE job SET note = 'default', fence = DEFAULT WHERE id = 1;
-- A DELETE sets no column: the transaction presents the token.
DELETE FROM job WHERE id = 1;
SELECT * FROM job WHERE id < 3 ORDER BY id;

-- Presented tokens: checked against each row's own mark, and stored.
BEGIN;
SELECT lockfence.present(12);
UPDATE job SET note = 'presented' WHERE id IN (1, 2);
SELECT * FROM job WHERE id < 3 ORDER BY id;
DELETE FROM job WHERE id = 1;
COMMIT;
BEGIN;
SELECT lockfence.present(11);
DELETE FROM job WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT lockfence.present(11);
UPDATE job SET note = 'one row of several is stale';
ROLLBACK;
SELECT * FROM job ORDER BY id;
-- A token presented for a named resource is not for a row.
BEGIN;
SELECT lockfence.present('row_fence:x', 100);
UPDATE job SET note = 'other' WHERE id = 2;
ROLLBACK;

-- conflicting tokens: presented and in the column, and different
BEGIN;
SELECT lockfence.present(12);
UPDATE job SET note = 'two tokens', fence = 13 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT lockfence.present(12);
UPDATE job SET note = 'one token', fence = 12 WHERE id = 2;
COMMIT;

-- INSERT: a new row has no holder yet, so it needs no token, and takes one that it is given.
INSERT INTO job VALUES (5, 'new');
INSERT INTO job VALUES (6, 'new', 20);
INSERT INTO job VALUES (7, 'new', -1);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO job VALUES (7, 'new', 0);
INSERT INTO job VALUES (7, 'new', NULL);
BEGIN;
SELECT lockfence.present(21);
INSERT INTO job VALUES (8, 'new');
INSERT INTO job VALUES (9, 'new', 22);
ROLLBACK;
BEGIN;
SELECT lockfence.present(21);
INSERT INTO job VALUES (8, 'new');
COMMIT;
SELECT * FROM job WHERE id > 4 ORDER BY id;
UPDATE job SET note = 'stale', fence = 19 WHERE id = 6;

-- A row deleted and inserted again starts anew.
BEGIN;
SELECT lockfence.present(20);
DELETE FROM job WHERE id = 6;
COMMIT;
INSERT INTO job VALUES (6, 'again', 1);
SELECT * FROM job WHERE id = 6;

-- A change of the key keeps the mark, as the row does.
UPDATE job SET id = 60, fence = 20 WHERE id = 6;
UPDATE job SET id = 6, fence = 19 WHERE id = 60;

-- A row whose token column holds what is no token has no mark.
CREATE TABLE odd (id integer PRIMARY KEY, fence bigint);
INSERT INTO odd VALUES (1, -5), (2, 0);
SELECT lockfence.attach('odd');
UPDATE odd SET fence = 1;
SELECT * FROM odd ORDER BY id;

-- The token column may have another name, and be a bigint; a table may lack a primary key.
CREATE TABLE named (id integer, "Grant No" bigint);
INSERT INTO named VALUES (1, 5);
SELECT lockfence.attach('named', token_column => 'Grant No');
UPDATE named SET id = 2, "Grant No" = 4;
UPDATE named SET id = 2;
UPDATE named SET id = 2, "Grant No" = 6;
SELECT * FROM named;

-- A row whose token is null: after the nulls' bitmap, which ends with the byte of the last column, come other values.
CREATE TABLE seven (a integer, b integer, c integer, d integer, e integer, f integer, fence lockfence.fence_token);
CREATE TABLE eight (a integer, b integer, c integer, d integer, e integer, f integer, g integer, fence lockfence.fence_token);
INSERT INTO seven VALUES (-1, 1, 1, 1, 1, 1, NULL);
INSERT INTO eight VALUES (-1, 1, 1, 1, 1, 1, 1, NULL);
SELECT lockfence.attach('seven'), lockfence.attach('eight');
UPDATE seven SET b = 2, fence = 5;
UPDATE eight SET b = 2, fence = 5;
SELECT seven.fence, eight.fence FROM seven, eight;

-- No mark table is involved.
BEGIN;
UPDATE job SET fence = 1000 WHERE id = 2;
SELECT count(*) FROM lockfence.presented();
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
ROLLBACK;

-- A savepoint that is rolled back takes the row's mark back with it.
BEGIN;
SAVEPOINT one;
UPDATE job SET note = 'away', fence = 1000 WHERE id = 2;
ROLLBACK TO one;
UPDATE job SET note = 'stays', fence = 13 WHERE id = 2;
COMMIT;
SELECT * FROM job WHERE id = 2;

DROP SCHEMA test_row_fence CASCADE;
