-- enforcement => 'advisory': decides as usual, and reports in the server's log instead of refusing.
\set SHOW_CONTEXT errors
CREATE SCHEMA test_advisory;
SET search_path = test_advisory;
CREATE TABLE item (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'advisory:{id}', 'token', enforcement => 'advisory');
CREATE TABLE job (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('job', enforcement => 'advisory');
CREATE TABLE ledger (id integer);
SELECT lockfence.attach('ledger', 'advisory:ledger', enforcement => 'advisory');
INSERT INTO item VALUES (1, 'new', 10);
INSERT INTO job VALUES (1, 'new', 10);

-- The reports go to the log, at LOG; here they are shown to the client as well.
\set SHOW_CONTEXT always
SET client_min_messages = log;
UPDATE item SET note = 'stale', token = 9 WHERE id = 1;
UPDATE item SET note = 'missing' WHERE id = 1;
UPDATE item SET note = 'null', token = NULL WHERE id = 1;
UPDATE item SET note = 'negative', token = -1 WHERE id = 1;
UPDATE job SET note = 'stale', fence = 9;
UPDATE job SET note = 'missing';
DELETE FROM job;
INSERT INTO ledger VALUES (1);
TRUNCATE item;
-- Each row is reported, also where the next one is of the same resource.
CREATE TABLE line (batch integer);
SELECT lockfence.attach('line', 'advisory:line-{batch}', enforcement => 'advisory');
INSERT INTO line VALUES (1), (1);
SET client_min_messages = warning;

-- Every write went on ...
SELECT count(*) FROM item;
SELECT count(*) FROM job;
SELECT count(*) FROM ledger;
-- ... and none of it moved a mark back, or left a token in a row fence that was no proof.
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'advisory:%';
INSERT INTO job VALUES (1, 'new', 10);
UPDATE job SET note = 'stale', fence = 9;
SELECT * FROM job;
UPDATE job SET note = 'null', fence = NULL;
SELECT * FROM job;
-- Accepted tokens advance and hold as on any fence.
INSERT INTO item VALUES (1, 'new', 11);
BEGIN;
UPDATE item SET note = 'equal', token = 11 WHERE id = 1;
SELECT * FROM lockfence.presented();
COMMIT;
UPDATE job SET note = 'higher', fence = 12;
SELECT * FROM job;
-- Conflicting tokens, an unknown epoch, a validator's no, a used token: reported too.
CREATE FUNCTION refuse(text, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE TABLE judged (id integer, note text);
SELECT lockfence.attach('judged', 'advisory:judged', 'token', enforcement => 'advisory', validator => 'refuse(text, bigint)',
	repeat => 'reject');
SET client_min_messages = log;
BEGIN;
SELECT lockfence.present(12);
UPDATE item SET note = 'conflict', token = 13 WHERE id = 1;
ROLLBACK;
BEGIN;
SELECT lockfence.set_epoch(1, 'test');
UPDATE item SET note = 'old epoch', token = 12 WHERE id = 1;
UPDATE item SET note = 'unknown epoch', token = lockfence.make_token(2, 1) WHERE id = 1;
ROLLBACK;
INSERT INTO judged VALUES (1, 'not valid', 5);
SELECT lockfence.present('advisory:judged', 5);
INSERT INTO judged VALUES (2, 'used', 5);
SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "guarded"}', 3);
BEGIN;
SELECT lockfence.present(12);
SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "conflict"}', 13);
ROLLBACK;
SET client_min_messages = warning;
SELECT * FROM item;
-- A token that was refused is not stored: it would stand for a missing mark, and reconcile() would raise one to it.
SELECT * FROM judged;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'advisory:%' ORDER BY 1;
-- present() itself belongs to no fence, and refuses.
\set SHOW_CONTEXT never
SELECT lockfence.present('advisory:1', 1);
DROP SCHEMA test_advisory CASCADE;
