-- Constant fences: one resource over a whole table, guarded by statement.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_constant;
SET search_path = test_constant;
CREATE TABLE ledger (id integer PRIMARY KEY, amount numeric);
SELECT lockfence.attach('ledger', 'constant:ledger');
SELECT kind, resource, token_column FROM lockfence.fences WHERE target = 'ledger'::regclass;
-- No row trigger: bulk writes cost nothing.
SELECT tgname, tgtype & 1 AS row_level, tgenabled FROM pg_trigger WHERE tgrelid = 'ledger'::regclass ORDER BY 1;

-- Without a token nothing passes, with rows or without.
INSERT INTO ledger VALUES (1, 1);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO ledger SELECT 1, 1 WHERE false;
UPDATE ledger SET amount = 0;
DELETE FROM ledger;
TRUNCATE ledger;
\echo :LAST_ERROR_SQLSTATE
COPY ledger FROM stdin;
1	1
\.

-- With one, presented by name or for everything.
BEGIN;
SELECT lockfence.present('constant:ledger', 10);
INSERT INTO ledger SELECT n, n FROM generate_series(1, 1000) n;
UPDATE ledger SET amount = -amount WHERE id % 2 = 0;
DELETE FROM ledger WHERE id > 10;
COMMIT;
BEGIN;
SELECT lockfence.present(10);
UPDATE ledger SET amount = 0 WHERE id = 3;
COPY ledger FROM stdin;
11	1
\.
SELECT * FROM lockfence.presented() ORDER BY resource NULLS FIRST;
COMMIT;
SELECT count(*), sum(amount) FROM ledger;
SELECT token FROM lockfence.mark WHERE resource = 'constant:ledger';

-- Stale, whatever the statement, and where no row matches.
BEGIN;
SELECT lockfence.present(9);
SAVEPOINT s;
INSERT INTO ledger VALUES (20, 1);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
UPDATE ledger SET amount = 0 WHERE false;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
DELETE FROM ledger WHERE false;
ROLLBACK TO s;
TRUNCATE ledger;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
WITH gone AS (DELETE FROM ledger RETURNING id) SELECT count(*) FROM gone;
ROLLBACK;

-- TRUNCATE is a write like another here.
BEGIN;
SELECT lockfence.present('constant:ledger', 11);
TRUNCATE ledger;
SELECT count(*) FROM ledger;
ROLLBACK;
SELECT count(*) FROM ledger;

-- conflicting tokens
BEGIN;
SELECT lockfence.present('constant:ledger', 10);
SELECT lockfence.present(11);
DELETE FROM ledger;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- A token presented inside the statement comes too late: its guard fired before.
WITH p AS MATERIALIZED (SELECT lockfence.present('constant:ledger', 12))
UPDATE ledger SET amount = 0 FROM p;
\echo :LAST_ERROR_SQLSTATE

-- With a token column the fence is guarded by row, and the column is proof.
CREATE TABLE entry (id integer PRIMARY KEY, amount numeric);
SELECT lockfence.attach('entry', 'constant:entry', 'token');
SELECT tgname, tgtype & 1 AS row_level, tgenabled FROM pg_trigger WHERE tgrelid = 'entry'::regclass ORDER BY 1;
INSERT INTO entry VALUES (1, 1, 20), (2, 2, 20);
INSERT INTO entry VALUES (3, 3);
INSERT INTO entry VALUES (3, 3, 19);
UPDATE entry SET amount = 0;
UPDATE entry SET amount = 0, token = 21 WHERE id = 2;
SELECT * FROM entry ORDER BY id;
-- The resource is the table's: row 1 was written at 20, and 20 is stale for it now.
UPDATE entry SET amount = 0, token = 20 WHERE id = 1;
BEGIN;
SELECT lockfence.present('constant:entry', 22);
UPDATE entry SET amount = 5;
DELETE FROM entry WHERE id = 1;
SELECT * FROM entry;
TRUNCATE entry;
COMMIT;

-- Doubled braces are literal ones: this is a constant.
CREATE TABLE braces (id integer);
SELECT lockfence.attach('braces', 'constant:{{id}}');
SELECT kind, resource FROM lockfence.fences WHERE target = 'braces'::regclass;
BEGIN;
SELECT lockfence.present('constant:{id}', 1);
INSERT INTO braces VALUES (1);
COMMIT;
SELECT lockfence.resource_of('braces', b) FROM braces b;

DROP SCHEMA test_constant CASCADE;
