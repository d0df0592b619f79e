-- The timeline gate.  A record that is changed by hand stands for a database whose history went back: no
-- history tells how it came to the timeline it is on.  test/t/041_gate.pl has real ones.
\set SHOW_CONTEXT never
SET client_min_messages = error;
-- a database of its own: other tests may leave marks that are higher than any floor
\set home :DBNAME
CREATE DATABASE regress_lf_gate;
\c regress_lf_gate
SET lockfence.track = on;
SET client_min_messages = error;
CREATE EXTENSION lockfence;
CREATE TABLE item (id int PRIMARY KEY, note text);
CREATE TABLE doc (id int PRIMARY KEY, note text);
CREATE TABLE job (id int);
CREATE TABLE job_token (id int);
CREATE TABLE lenient (id int PRIMARY KEY, note text);
CREATE TABLE tried (id int PRIMARY KEY, note text);
CREATE TABLE part (id int, note text) PARTITION BY LIST (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);
SELECT lockfence.attach('item', 'gate:item-{id}', 'fence'), lockfence.attach('doc'), lockfence.attach('job', 'gate:job'),
	lockfence.attach('job_token', 'gate:job_token', 'fence'), lockfence.attach('lenient', 'gate:lenient', 'fence', missing => 'allow'),
	lockfence.attach('tried', 'gate:tried-{id}', 'fence', enforcement => 'advisory'), lockfence.attach('part', enforcement => 'advisory');
INSERT INTO item VALUES (1, 'old', 10);
INSERT INTO doc VALUES (1, 'old', 10);
INSERT INTO lenient VALUES (1, 'old', 10);
INSERT INTO tried VALUES (1, 'old', 10);
INSERT INTO part VALUES (1, 'old', 10);
BEGIN;
SELECT lockfence.present('gate:job', 10);
INSERT INTO job VALUES (1);
COMMIT;
SELECT coalesce(max(id), 0) AS last_entry FROM lockfence.admin_log \gset

-- Runs a statement; tells what it came to, without the numbers of timelines.
CREATE FUNCTION code_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate;
END
$$;
CREATE FUNCTION told_of(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text, OUT in_table text)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
		hint = PG_EXCEPTION_HINT, in_table = TABLE_NAME;
	detail := regexp_replace(detail, '(timeline|to) \d+', '\1 N', 'g');
END
$$;
CREATE VIEW gate AS
SELECT state, recorded_timeline - timeline AS ahead, event, left_at, reason FROM lockfence.gate();
CREATE VIEW findings AS
SELECT severity, code, regexp_replace(problem, '(timeline|to) \d+', '\1 N', 'g') AS problem, remedy, advice FROM lockfence.verify()
WHERE code IN ('sealed', 'timeline_changed', 'timeline_unknown', 'timeline_ignored');
CREATE PROCEDURE go_back() LANGUAGE sql AS $$
UPDATE lockfence.state SET value = value + 1000 WHERE name LIKE 'timeline:%'
$$;
CREATE TABLE ways (place int, statement text);
INSERT INTO ways VALUES
	(1, 'SELECT lockfence.present(''gate:item-1'', 20)'),
	(2, 'SELECT lockfence.present(''gate:item-1'', 10)'),
	(3, 'INSERT INTO item VALUES (2, ''new'', 20)'),
	(4, 'UPDATE item SET note = ''new'', fence = 20'),
	(5, 'UPDATE item SET note = ''new'''),
	(6, 'DELETE FROM item'),
	(7, 'INSERT INTO doc VALUES (2, ''new'')'),
	(8, 'UPDATE doc SET fence = 20'),
	(9, 'DELETE FROM doc'),
	(10, 'INSERT INTO job VALUES (2)'),
	(11, 'TRUNCATE job'),
	(12, 'INSERT INTO job_token VALUES (2, 20)'),
	(13, 'INSERT INTO lenient VALUES (2, ''new'')'),
	(14, 'SELECT lockfence.guarded_update(''item'', ''{"id": 1}'', ''{"note": "new"}'', 20)'),
	(15, 'SELECT lockfence.guarded_update(''item'', ''{"note": "none"}'', ''{"note": "new"}'', 20)'),
	(16, 'SELECT lockfence.guarded_delete(''doc'', ''{"id": 1}'', 20)');

SELECT * FROM gate;
SELECT * FROM findings;

-- Sealed: every way to write is refused, also in a session that was accepted just before.
BEGIN;
SELECT lockfence.present('gate:item-1', 20);
UPDATE item SET note = 'mine';
CALL go_back();
SELECT * FROM gate;
SELECT place, code_of(statement), statement FROM ways ORDER BY place;
\x on
SELECT * FROM told_of('UPDATE item SET note = ''new''');
SELECT * FROM told_of('SELECT lockfence.present(''gate:item-1'', 20)');
SELECT * FROM findings;
\x off
SELECT lockfence.is_current('gate:item-1', 20);
-- the ambient token is kept by the transaction, and decides nothing
SELECT lockfence.present(20);
ROLLBACK;
-- That was rolled back, and the gate with it.
SELECT * FROM gate;
SELECT lockfence.is_current('gate:item-1', 20);
BEGIN;
SELECT count(*) FILTER (WHERE code_of(statement) = 'LF005') AS sealed FROM ways;
ROLLBACK;

-- Committed.  Advisory fences report; administration and bypass go on.
CALL go_back();
SELECT code_of(statement), count(*) FROM ways GROUP BY 1;
UPDATE tried SET note = 'passed', fence = 30;
UPDATE tried SET id = 2, fence = 30;
INSERT INTO tried VALUES (3, 'passed', 30);
DELETE FROM tried WHERE id = 3;
UPDATE part SET id = 2, note = 'passed', fence = 30;
SELECT * FROM tried ORDER BY id;
SELECT tableoid::regclass, * FROM part;
SELECT token FROM lockfence.mark WHERE resource = 'gate:tried-1';
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE item SET note = 'mended';
COMMIT;
SELECT lockfence.raise_mark('gate:raised', 15, 'while it is sealed');
SELECT CASE WHEN (SELECT available FROM lockfence.stats_info())
	THEN (SELECT sealed > 0 AND advisory = 0 FROM lockfence.stats WHERE target = 'item'::regclass)
		AND (SELECT sealed = 0 AND advisory > 0 FROM lockfence.stats WHERE target = 'tried'::regclass)
		AND (SELECT code = 'LF005' FROM lockfence.refusals WHERE database = current_database() LIMIT 1)
	ELSE NOT EXISTS (SELECT FROM lockfence.stats) END AS counted;

-- the drill says why it cannot be played
SELECT code, message FROM told_of('SELECT * FROM lockfence.drill(''item'', ''{"id": 1}'', ''{"note": "x"}'')');

-- reopen() wants a token that can be right, and a reason.
\x on
SELECT * FROM told_of('SELECT lockfence.reopen(NULL, ''x'')');
SELECT * FROM told_of('SELECT lockfence.reopen(0, ''x'')');
SELECT * FROM told_of('SELECT lockfence.reopen(50, '''')');
SELECT lockfence.raise_mark('gate:high', 40, 'higher than the floor to be');
SELECT * FROM told_of('SELECT lockfence.reopen(39, ''x'')');
BEGIN;
SELECT lockfence.set_epoch(0, 'test');
SELECT * FROM told_of('SELECT lockfence.reopen(281474976710656, ''x'')');
ROLLBACK;
\x off
SELECT state FROM gate;

-- One that is rolled back opens nothing for longer.
BEGIN;
SELECT lockfence.reopen(50, 'rolled back');
SELECT state FROM gate;
SELECT code_of('UPDATE item SET fence = 50');
ROLLBACK;
SELECT code_of('UPDATE item SET fence = 50');
BEGIN;
SAVEPOINT s;
SELECT lockfence.reopen(50, 'rolled back');
SELECT code_of('UPDATE item SET fence = 50');
ROLLBACK TO s;
SELECT code_of('UPDATE item SET fence = 50');
ROLLBACK;

BEGIN;
SELECT lockfence._record_timeline() > 1000 AS went_back;
SELECT code_of('UPDATE item SET fence = 50');
ROLLBACK;
SELECT code_of('UPDATE item SET fence = 50');

-- From here on what is lower than the floor is stale for every resource, whatever its mark.
SELECT lockfence.reopen(50, 'restored from the backup of noon');
SELECT * FROM gate;
SELECT * FROM findings;
\x on
SELECT * FROM told_of('UPDATE item SET fence = 10');
SELECT * FROM told_of('UPDATE doc SET fence = 49');
\x off
SELECT code_of('SELECT lockfence.present(''gate:item-1'', 49)') AS has_mark,
	code_of('SELECT lockfence.present(''gate:never seen'', 49)') AS has_none,
	lockfence.is_current('gate:item-1', 49) AS current_49, lockfence.is_current('gate:item-1', 50) AS current_50;
SELECT code_of('UPDATE item SET fence = 50') AS named, code_of('UPDATE doc SET fence = 50') AS row_fence,
	code_of('SELECT lockfence.present(''gate:never seen'', 50)') AS new;
SELECT path, verdict FROM lockfence.drill('item', '{"id": 1}', '{"note": "x"}') WHERE verdict NOT IN ('refused', 'skipped');
SELECT action, before, after, reason FROM lockfence.admin_log WHERE id > :last_entry AND action = 'reopen';

-- Also without a seal, as after a snapshot that was not noticed; forward only, but for reset_floor().
SELECT lockfence.reopen(60, 'raw snapshot');
\x on
SELECT * FROM told_of('SELECT lockfence.reopen(55, ''x'')');
\x off
SELECT code_of('UPDATE item SET fence = 59'), code_of('UPDATE item SET fence = 60');
SELECT lockfence.reset_floor(55, 'too high');
SELECT name, value FROM lockfence.state WHERE name IN ('floor', 'minimum') ORDER BY 1;
SELECT lockfence.reset_floor(58, 'higher than the minimum');
SELECT name, value FROM lockfence.state WHERE name IN ('floor', 'minimum') ORDER BY 1;
SELECT lockfence.reset_floor(NULL, 'none');
SELECT name, value FROM lockfence.state WHERE name IN ('floor', 'minimum') ORDER BY 1;
SELECT code_of('SELECT lockfence.present(''gate:item-1'', 59)') AS has_mark,
	code_of('SELECT lockfence.present(''gate:another'', 1)') AS has_none;

-- Another cluster's record, as pg_upgrade brings it, is taken over by the first transaction that commits.
SELECT coalesce(max(id), 0) AS last_entry FROM lockfence.admin_log \gset
CREATE VIEW record AS
SELECT name = 'timeline:' || system_identifier::text AS is_own, value = timeline_id AS is_current
FROM lockfence.state, pg_control_system(), pg_control_checkpoint() WHERE name LIKE 'timeline:%';
UPDATE lockfence.state SET name = 'timeline:1', value = 7 WHERE name LIKE 'timeline:%';
SELECT * FROM gate;
SELECT severity, code FROM findings;
-- looking changes nothing, and neither does who only reads or fails
SELECT lockfence.is_current('gate:item-1', 60);
BEGIN;
UPDATE item SET fence = 60;
ROLLBACK;
BEGIN;
UPDATE item SET fence = 60;
SET TRANSACTION READ ONLY;
COMMIT;
SELECT * FROM record;
UPDATE item SET fence = 60;
SELECT * FROM record;
SELECT state FROM gate;
SELECT action, before, role = session_user AS by_me, reason FROM lockfence.admin_log WHERE id > :last_entry;

-- By a role that may write to no table of lockfence, in a serializable transaction, with a savepoint.
CREATE ROLE regress_lf_gate;
GRANT SELECT, UPDATE ON item TO regress_lf_gate;
UPDATE lockfence.state SET name = 'timeline:1' WHERE name LIKE 'timeline:%';
SET ROLE regress_lf_gate;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SAVEPOINT s;
UPDATE item SET fence = 60;
ROLLBACK TO s;
COMMIT;
SELECT current_user = 'regress_lf_gate' AS same_role;
RESET ROLE;
SELECT * FROM record;

-- No record: as with the objects of 1.0, nothing is gated, and verify() says so.
DELETE FROM lockfence.state WHERE name LIKE 'timeline:%';
SELECT state FROM gate;
SELECT * FROM findings;
SELECT code_of('UPDATE item SET fence = 60');
SELECT count(*) FROM record;
SELECT remedy FROM findings \gexec
SELECT * FROM record;
SELECT * FROM findings;

-- A record that comes by INSERT, as by a data restore or from a publisher, is not about this database.
INSERT INTO lockfence.state SELECT name, value + 1 FROM lockfence.state WHERE name LIKE 'timeline:%';
INSERT INTO lockfence.state VALUES ('timeline:1', 1);
SELECT * FROM record;
INSERT INTO lockfence.state VALUES ('timeline', 1);

\c :home
DROP DATABASE regress_lf_gate;
DROP ROLE regress_lf_gate;
