-- lockfence.enforcement = 'advisory': present(), the guarded functions and every fence report, and refuse nothing.
\set SHOW_CONTEXT always
SET client_min_messages = warning;
CREATE SCHEMA test_enforcement;
SET search_path = test_enforcement;
SHOW lockfence.enforcement;
CREATE TABLE item (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'enforcement:{id}', 'token');
CREATE TABLE job (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('job');
CREATE TABLE ledger (id integer);
SELECT lockfence.attach('ledger', 'enforcement:ledger');
INSERT INTO item VALUES (1, 'new', 43);
INSERT INTO job VALUES (1, 'new', 43);
SELECT lockfence.present('enforcement:ledger', 43);

SET lockfence.enforcement = 'advisory';
SET client_min_messages = log;
-- A stale token: the mark is returned, as ever; what follows is reported as stale too, not as missing.
BEGIN;
SELECT lockfence.present('enforcement:1', 42);
UPDATE item SET note = 'stale' WHERE id = 1;
SELECT * FROM lockfence.presented();
-- ... until it is presented with the right one
SELECT lockfence.present('enforcement:1', 43);
UPDATE item SET note = 'equal' WHERE id = 1;
-- ... which a stale one then does not replace
SELECT lockfence.present('enforcement:1', 41);
UPDATE item SET note = 'equal' WHERE id = 1;
SELECT * FROM lockfence.presented();
COMMIT;
-- What was reported is not held beyond its savepoint, and gives no proof.
BEGIN;
SAVEPOINT s;
SELECT lockfence.present('enforcement:1', 42);
ROLLBACK TO s;
SELECT * FROM lockfence.presented();
ROLLBACK;
UPDATE job SET note = 'stale', fence = 42;
UPDATE job SET note = 'missing';
DELETE FROM job;
INSERT INTO ledger VALUES (1);
TRUNCATE item;
INSERT INTO item VALUES (1, 'stale', 42);
SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "stale"}', 42);
SELECT lockfence.guarded_delete('item', '{"id": 1}', 42);
-- present() of another epoch, and under a gate that is shut or a mark that is in use: as any refusal
BEGIN;
SELECT lockfence.set_epoch(1, 'test');
SELECT lockfence.present('enforcement:1', 44);
SELECT lockfence.present('enforcement:1', lockfence.make_token(2, 1));
ROLLBACK;
-- What is no token is an error of the call.
SELECT lockfence.present('enforcement:1', 0);
-- Tokens that pass do what they do on any fence.
SELECT lockfence.present('enforcement:1', 44);
SELECT lockfence.issue('enforcement:1');
SET client_min_messages = warning;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'enforcement:%' ORDER BY 1;

-- A fence that is broken reports as well, and goes back to refusing with the setting.
ALTER TABLE item RENAME id TO number;
INSERT INTO item VALUES (2, 'undecided');
RESET lockfence.enforcement;
INSERT INTO item VALUES (3, 'refused');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('item', '{"number": 2}', '{"note": "refused"}', 50);
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE item RENAME number TO id;
-- What was presented while it only reported is judged by those that refuse.
BEGIN;
SET LOCAL lockfence.enforcement = 'advisory';
SELECT lockfence.present('enforcement:2', 50);
SELECT lockfence.present('enforcement:1', 42);
SET LOCAL lockfence.enforcement = 'declared';
INSERT INTO item VALUES (1, 'stale');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- ... and vouches for nothing under a default validator
CREATE FUNCTION knows(resource text, token lockfence.fence_token) RETURNS boolean LANGUAGE sql AS 'SELECT token < 100';
INSERT INTO job VALUES (2, 'new', 43);
BEGIN;
SET LOCAL lockfence.validator = 'test_enforcement.knows(text, lockfence.fence_token)';
SET LOCAL lockfence.enforcement = 'advisory';
SELECT lockfence.present('enforcement:ledger', 101);
SET LOCAL lockfence.enforcement = 'declared';
UPDATE job SET fence = 101;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- A commit whose token was compared with no mark is reported, whatever lockfence.unchecked_token says.
SET lockfence.unchecked_token = 'error';
SET lockfence.enforcement = 'advisory';
BEGIN;
SELECT lockfence.present(1);
UPDATE job SET note = 'x' WHERE id = 99;
CREATE TABLE written (id integer);
COMMIT;
RESET lockfence.unchecked_token;
RESET lockfence.enforcement;

-- It is a superuser's to set.
CREATE ROLE regress_enforcement;
SET ROLE regress_enforcement;
SET lockfence.enforcement = 'advisory';
RESET ROLE;
DROP ROLE regress_enforcement;
SET lockfence.enforcement = 'off';
DROP SCHEMA test_enforcement CASCADE;
