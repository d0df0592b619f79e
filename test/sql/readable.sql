-- A resource's name holds values of a row: a role that may not read those is shown the fence's template.
\set SHOW_CONTEXT always
\set VERBOSITY default
SET client_min_messages = warning;
CREATE SCHEMA test_readable;
SET search_path = test_readable;
SET lockfence.track = on;
CREATE ROLE regress_lf_blind;
GRANT USAGE ON SCHEMA lockfence, test_readable TO regress_lf_blind;
GRANT EXECUTE ON FUNCTION lockfence.present(lockfence.fence_token), lockfence.present(text, lockfence.fence_token),
	lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token) TO regress_lf_blind;
CREATE TABLE patient (id integer, ward text, note text);
SELECT lockfence.attach('patient', 'readable:{ward}/{id}', 'token');
INSERT INTO patient VALUES (1, 'secret', 'new', 10);
GRANT UPDATE (note, token, ward), INSERT, DELETE ON patient TO regress_lf_blind;

-- Each refusal to a role that may update, insert and delete, and read nothing
SET ROLE regress_lf_blind;
UPDATE patient SET note = 'x', token = 9;
UPDATE patient SET note = 'x';
UPDATE patient SET note = 'x', token = -1;
UPDATE patient SET ward = 'x', token = 9;
UPDATE patient SET ward = repeat('x', 1024), token = 9;
DELETE FROM patient;
INSERT INTO patient VALUES (1, 'secret', 'x', 9);
BEGIN;
SELECT lockfence.present(12);
UPDATE patient SET note = 'x', token = 13;
ROLLBACK;
-- ... what it holds
BEGIN;
SELECT lockfence.present(12);
UPDATE patient SET note = 'x';
SELECT * FROM lockfence.presented() ORDER BY token, resource NULLS FIRST;
-- ... and what it names itself is no secret
SELECT lockfence.present('readable:secret/1', 12);
SELECT * FROM lockfence.presented() ORDER BY token, resource NULLS FIRST;
ROLLBACK;
SELECT lockfence.present('readable:secret/1', 9);
-- An epoch, a validator, the report of an advisory fence
RESET ROLE;
BEGIN;
SELECT lockfence.set_epoch(1, 'test');
SET LOCAL ROLE regress_lf_blind;
SAVEPOINT s;
UPDATE patient SET note = 'x', token = 11;
ROLLBACK TO s;
UPDATE patient SET note = 'x', token = lockfence.make_token(2, 1);
ROLLBACK;
CREATE FUNCTION refuse(text, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE TABLE judged (id integer, note text);
SELECT lockfence.attach('judged', 'readable:judged-{id}', 'token', validator => 'refuse(text, bigint)');
CREATE TABLE tried (id integer, note text);
SELECT lockfence.attach('tried', 'readable:tried-{id}', 'token', enforcement => 'advisory');
INSERT INTO tried VALUES (4711, 'new', 10);
GRANT INSERT, UPDATE ON judged, tried TO regress_lf_blind;
SET ROLE regress_lf_blind;
INSERT INTO judged VALUES (4711, 'x', 10);
SET client_min_messages = log;
UPDATE tried SET note = 'x', token = 9;
SET client_min_messages = warning;
-- The view of refusals has the name.
RESET ROLE;
SELECT CASE WHEN (SELECT available FROM lockfence.stats_info())
	THEN (SELECT count(*) FROM lockfence.refusals WHERE resource = 'readable:tried-4711' AND target = 'tried'::regclass) ELSE 1 END AS recorded;

-- With SELECT on one of the columns, on both, on the table
GRANT SELECT (ward) ON patient TO regress_lf_blind;
SET ROLE regress_lf_blind;
UPDATE patient SET note = 'x', token = 9;
RESET ROLE;
GRANT SELECT (id) ON patient TO regress_lf_blind;
SET ROLE regress_lf_blind;
UPDATE patient SET note = 'x', token = 9;
RESET ROLE;
REVOKE SELECT (id, ward) ON patient FROM regress_lf_blind;
GRANT SELECT ON patient TO regress_lf_blind;
SET ROLE regress_lf_blind;
UPDATE patient SET note = 'x', token = 9;
BEGIN;
SELECT lockfence.present(12);
UPDATE patient SET note = 'x';
SELECT * FROM lockfence.presented() ORDER BY token, resource NULLS FIRST;
ROLLBACK;
-- ... under row security, though that one would show the row
RESET ROLE;
ALTER TABLE patient ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON patient USING (true);
SET ROLE regress_lf_blind;
UPDATE patient SET note = 'x', token = 9;
RESET ROLE;
UPDATE patient SET note = 'x', token = 9;

-- A partition, by the table that it is part of and which numbers its columns otherwise
CREATE TABLE part (id integer, place text, note text) PARTITION BY LIST (place);
CREATE TABLE part_a (note text, place text, junk text, id integer);
ALTER TABLE part_a DROP COLUMN junk;
ALTER TABLE part ATTACH PARTITION part_a FOR VALUES IN ('a');
SELECT lockfence.attach('part', 'readable:part-{id}', 'token');
INSERT INTO part VALUES (4711, 'a', 'new', 10);
GRANT UPDATE ON part TO regress_lf_blind;
SET ROLE regress_lf_blind;
UPDATE part SET note = 'x', token = 9;
RESET ROLE;
GRANT SELECT (id) ON part TO regress_lf_blind;
SET ROLE regress_lf_blind;
UPDATE part SET note = 'x', token = 9;
RESET ROLE;

-- A constant says nothing of a row.
CREATE TABLE ledger (id integer);
SELECT lockfence.attach('ledger', 'readable:ledger');
CREATE TABLE braces (id integer);
SELECT lockfence.attach('braces', 'readable:{{braces}}', 'token');
ALTER TABLE braces ENABLE ROW LEVEL SECURITY;
GRANT INSERT ON ledger, braces TO regress_lf_blind;
SET ROLE regress_lf_blind;
INSERT INTO ledger VALUES (1);
INSERT INTO braces VALUES (1);
RESET ROLE;
DROP SCHEMA test_readable CASCADE;
DROP OWNED BY regress_lf_blind;
DROP ROLE regress_lf_blind;
