-- A single object of the extension that is dropped, with all that depends on it: no
-- stale write passes, or verify() does not let it rest.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = error;
CREATE SCHEMA test_members;
SET search_path = test_members;
CREATE TABLE by_row (id int PRIMARY KEY, note text);
CREATE TABLE by_name (id int PRIMARY KEY, note text);
CREATE TABLE by_constant (id int PRIMARY KEY, note text);
SELECT lockfence.attach('by_row');
SELECT lockfence.attach('by_name', 'members-{id}', 'fence');
SELECT lockfence.attach('by_constant', 'members');
INSERT INTO by_row VALUES (1, 'current', 20);
INSERT INTO by_name VALUES (1, 'current', 20);
SELECT lockfence.present('members', 20);

-- The writes of a stale holder that pass.
CREATE FUNCTION passes(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RAISE EXCEPTION SQLSTATE 'ZZ000';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE = 'ZZ000';
END
$$;
CREATE FUNCTION what_passes() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(w.name, ', ' ORDER BY w.name)
	FROM (VALUES
		('by_row', 'UPDATE test_members.by_row SET note = ''stale'', fence = 10'),
		('by_row, no token', 'UPDATE test_members.by_row SET note = ''stale'''),
		('by_row, truncate', 'TRUNCATE test_members.by_row'),
		('by_name', 'UPDATE test_members.by_name SET note = ''stale'', fence = 10'),
		('by_name, no token', 'DELETE FROM test_members.by_name'),
		('by_constant', 'INSERT INTO test_members.by_constant VALUES (2, ''stale'')'),
		('present', 'SELECT lockfence.present(''members'', 10::bigint)'),
		('guarded', 'SELECT lockfence.guarded_update(''test_members.by_row'', ''{"id": 1}'', ''{"note": "stale"}'', 10::bigint)')
	) AS w (name, statement)
	WHERE test_members.passes(w.statement)
$$;
CREATE FUNCTION what_verify_says() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT coalesce(string_agg(DISTINCT severity || ' ' || code, ', '), 'nothing') FROM lockfence.verify() v
		WHERE v.severity = 'error' AND (v.target IS NULL OR v.target::text ~ 'by_|lockfence'));
EXCEPTION WHEN OTHERS THEN
	RETURN 'it fails: ' || SQLSTATE;
END
$$;
CREATE FUNCTION after(commands text, OUT passes text, OUT says text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE commands;
	passes := test_members.what_passes();
	IF passes IS NOT NULL THEN
		says := test_members.what_verify_says();
	END IF;
	RAISE EXCEPTION SQLSTATE 'ZZ000' USING MESSAGE = coalesce(passes, ''), DETAIL = coalesce(says, '');
EXCEPTION WHEN SQLSTATE 'ZZ000' THEN
	passes := nullif(SQLERRM, '');
	GET STACKED DIAGNOSTICS says = PG_EXCEPTION_DETAIL;
WHEN dependent_objects_still_exist OR internal_error THEN	-- it is not dropped
	NULL;
END
$$;

SELECT what_passes();
CREATE TABLE members AS
SELECT i.type || ' ' || i.identity AS member
FROM pg_depend d CROSS JOIN pg_identify_object(d.classid, d.objid, d.objsubid) AS i
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'lockfence');
SELECT count(*) > 100 FROM members;
-- What takes one of its dependents along that is a member still takes the extension, as DROP EXTENSION CASCADE does; and a
-- guard's function takes the guards. verify() is no more then, or stops with an error.
SELECT DISTINCT a.passes, a.says
FROM members m CROSS JOIN LATERAL after(format('ALTER EXTENSION lockfence DROP %1$s; DROP %1$s CASCADE', m.member)) a
WHERE a.passes IS NOT NULL ORDER BY 1, 2;
SELECT member FROM members CROSS JOIN LATERAL after('ALTER EXTENSION lockfence DROP ' || member) a WHERE a.passes IS NOT NULL;

-- The same of what belongs to its tables, and of other ways to be rid of them.
SELECT c.command, a.passes, a.says
FROM (VALUES ('DROP TRIGGER "~lockfence_mark" ON lockfence.mark'), ('DROP TRIGGER "~lockfence_marks" ON lockfence.mark'),
	('DROP TRIGGER "~lockfence_merge" ON lockfence.state'), ('DROP TRIGGER "~lockfence_state" ON lockfence.state'),
	('DROP INDEX lockfence.mark_hash'), ('ALTER TABLE lockfence.mark DROP CONSTRAINT mark_pkey'),
	('ALTER TABLE lockfence.mark RENAME TO marks'), ('ALTER TABLE lockfence.state RENAME TO states'),
	('ALTER INDEX lockfence.mark_pkey RENAME TO other'), ('ALTER SCHEMA lockfence RENAME TO other'),
	('ALTER EXTENSION lockfence DROP TABLE lockfence.mark; ALTER TABLE lockfence.mark SET SCHEMA test_members'),
	('ALTER EXTENSION lockfence DROP TABLE lockfence.state; ALTER TABLE lockfence.state SET SCHEMA test_members')
) AS c (command) CROSS JOIN LATERAL after(c.command) a
WHERE a.passes IS NOT NULL;

-- A function that is replaced: only a superuser can, and verify() tells.
SELECT f.name, a.passes, a.says
FROM (VALUES ('guard_row'), ('guard_statement'), ('guard_truncate'), ('guard_mark'), ('guard_marks'), ('state_changed')) AS f (name)
	CROSS JOIN LATERAL after(format(
		'CREATE OR REPLACE FUNCTION lockfence.%s() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN new; END''', f.name)) a
WHERE a.passes IS NOT NULL;
BEGIN;
CREATE OR REPLACE FUNCTION lockfence.guard_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
SELECT problem, remedy FROM lockfence.verify('by_row') WHERE code = 'guard_function';
SELECT remedy FROM lockfence.verify('by_row') WHERE code = 'guard_function' \gexec
SELECT problem, remedy FROM lockfence.verify('by_row') WHERE code = 'guard_function';
ROLLBACK;

-- Nothing can be dropped by itself.
DROP TABLE lockfence.mark CASCADE;
DROP FUNCTION lockfence.guard_row() CASCADE;
DROP EVENT TRIGGER lockfence_after_ddl;
DROP DOMAIN lockfence.fence_token CASCADE;

SELECT what_passes();
DROP SCHEMA test_members CASCADE;
