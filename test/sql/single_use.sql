-- repeat => 'reject': a token writes in one transaction, the one that shows it first.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_single;
SET search_path = test_single;
CREATE TABLE item (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'single:{id}', 'token', repeat => 'reject');
-- Within its transaction it may be used again, in any number of statements.
BEGIN;
INSERT INTO item VALUES (1, 'new', 10);
UPDATE item SET note = 'same transaction', token = 10 WHERE id = 1;
UPDATE item SET note = 'remembered' WHERE id = 1;
SELECT lockfence.present('single:1', 10);
COMMIT;
-- In another one it is used up.
UPDATE item SET note = 'again', token = 10 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET note = 'lower', token = 9 WHERE id = 1;
BEGIN;
SELECT lockfence.present(10);
DELETE FROM item WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "again"}', 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "next"}', 11);
-- present() knows of no fence and accepts it; the write that follows in that transaction does not.
BEGIN;
SELECT lockfence.present('single:1', 11);
UPDATE item SET note = 'held' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- ... a token that present() advances to and commits is used up as well
SELECT lockfence.present('single:1', 12);
UPDATE item SET note = 'presented before', token = 12 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
-- ... also where the mark is cached, as it is after a session has presented the token again
SELECT lockfence.present('single:1', 12);
SELECT lockfence.present('single:1', 12);
UPDATE item SET note = 'cached', token = 12 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present('single:1', 13);
UPDATE item SET note = 'presented' WHERE id = 1;
COMMIT;
-- A rolled-back use is none.
BEGIN;
UPDATE item SET note = 'away', token = 14 WHERE id = 1;
ROLLBACK;
BEGIN;
SAVEPOINT s;
UPDATE item SET note = 'away', token = 14 WHERE id = 1;
ROLLBACK TO s;
UPDATE item SET note = 'stays', token = 14 WHERE id = 1;
COMMIT;
SELECT * FROM item;

-- By tuple lock it is the same.
SET lockfence.max_resource_locks = 0;
UPDATE item SET note = 'again', token = 14 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
RESET lockfence.max_resource_locks;

-- A row fence
CREATE TABLE job (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('job', repeat => 'reject');
BEGIN;
INSERT INTO job VALUES (1, 'new', 10);
UPDATE job SET note = 'same transaction', fence = 10;
COMMIT;
UPDATE job SET note = 'again', fence = 10;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
UPDATE job SET note = 'next', fence = 11;
UPDATE job SET note = 'same transaction', fence = 11;
SAVEPOINT s;
UPDATE job SET note = 'savepoint', fence = 11;
RELEASE s;
UPDATE job SET note = 'released', fence = 11;
COMMIT;
BEGIN;
SAVEPOINT s;
UPDATE job SET note = 'away', fence = 12;
ROLLBACK TO s;
UPDATE job SET note = 'stays', fence = 12;
COMMIT;
SELECT * FROM job;

-- A constant fence
CREATE TABLE ledger (id integer);
SELECT lockfence.attach('ledger', 'single:ledger', repeat => 'reject');
BEGIN;
SELECT lockfence.present('single:ledger', 10);
INSERT INTO ledger VALUES (1);
INSERT INTO ledger VALUES (2);
COMMIT;
BEGIN;
SELECT lockfence.present('single:ledger', 10);
INSERT INTO ledger VALUES (3);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT lockfence.present(10);
TRUNCATE ledger;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SELECT count(*) FROM ledger;

-- A token that was used up stays so when its mark is folded into the floor
SELECT lockfence._set_state('floor', 10) IS NULL AS no_floor_before;
CREATE TABLE named_job (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('named_job', 'single:named-{id}', token_column => 'fence', repeat => 'reject');
INSERT INTO named_job VALUES (1, 'folded', 10);
\echo :LAST_ERROR_SQLSTATE
-- ... and if it was presented before
BEGIN;
SELECT lockfence.present('single:named-1', 10);
INSERT INTO named_job VALUES (1, 'presented', 10);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
INSERT INTO named_job VALUES (1, 'new', 11);
SELECT lockfence._set_state('floor', NULL);
-- ... or lost in a restore, and stands in the row alone
SET lockfence.bypass = on;
INSERT INTO named_job VALUES (2, 'restored', 20);
RESET lockfence.bypass;
UPDATE named_job SET note = 'again', fence = 20 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
UPDATE named_job SET note = 'next', fence = 21 WHERE id = 2;
SELECT id, note, fence FROM named_job ORDER BY id;
DROP SCHEMA test_single CASCADE;
