-- verify(): what is wrong with the extension's own objects, its privileges and
-- the settings of the database.  Each change is made in a transaction, found,
-- mended as printed where there is a remedy, and rolled back.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA test_verify_database;
SET search_path = test_verify_database;

-- What is to be found could not be made otherwise.
ALTER EVENT TRIGGER lockfence_after_ddl DISABLE;

-- What the cluster had before is not ours to test.
CREATE VIEW everything AS
SELECT v.target, v.severity, v.code, v.problem, v.remedy, v.advice, v.place
FROM lockfence.verify() WITH ORDINALITY AS v (target, severity, code, problem, remedy, advice, place)
WHERE v.target IS NULL OR v.target IN (SELECT oid FROM pg_class WHERE relnamespace = 'lockfence'::regnamespace);
CREATE TABLE before AS TABLE everything;
CREATE VIEW found AS
SELECT target, severity, code, problem, remedy, advice FROM everything
WHERE problem NOT IN (SELECT problem FROM before) ORDER BY place;

-- What \gexec does, for what it would not print alike everywhere.
CREATE PROCEDURE mend() LANGUAGE plpgsql AS $$
DECLARE
	remedy text;
BEGIN
	FOR remedy IN SELECT f.remedy FROM found f WHERE f.remedy IS NOT NULL LOOP
		EXECUTE remedy;
	END LOOP;
END
$$;

-- mark_unlogged, mark_row_security
BEGIN;
ALTER TABLE lockfence.mark SET UNLOGGED;
ALTER TABLE lockfence.state SET UNLOGGED;
ALTER TABLE lockfence.mark ENABLE ROW LEVEL SECURITY;
ALTER TABLE lockfence.admin_log FORCE ROW LEVEL SECURITY;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT code FROM found;
ROLLBACK;

-- mark_key: gone, with the marks that the fence then cannot find
BEGIN;
ALTER TABLE lockfence.mark DROP CONSTRAINT mark_pkey;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;
ROLLBACK;

-- mark_key: another collation, which a new C library can sort anew
BEGIN;
ALTER TABLE lockfence.mark ALTER COLUMN resource TYPE text COLLATE pg_catalog."default";
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;
ROLLBACK;

-- mark_key: of that name, but not a key; on other columns; not valid; of another table
BEGIN;
ALTER TABLE lockfence.mark DROP CONSTRAINT mark_pkey;
CREATE INDEX mark_pkey ON lockfence.mark (resource COLLATE "POSIX");
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;
ALTER TABLE lockfence.mark DROP CONSTRAINT mark_pkey;
ALTER TABLE lockfence.mark ADD CONSTRAINT mark_pkey PRIMARY KEY (resource, token);
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'lockfence.mark_pkey'::regclass;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;
ALTER INDEX lockfence.mark_pkey RENAME TO other_pkey;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;
ROLLBACK;

-- mark_hash: gone; of that name, but no hash index, or on other columns, or of some marks; not valid
BEGIN;
DROP INDEX lockfence.mark_hash;
SELECT * FROM found;
CALL mend();
SELECT * FROM found;
DROP INDEX lockfence.mark_hash;
CREATE INDEX mark_hash ON lockfence.mark (resource);
SELECT * FROM found;
CALL mend();
SELECT * FROM found;
DROP INDEX lockfence.mark_hash;
CREATE INDEX mark_hash ON lockfence.mark USING hash (token);
SELECT problem FROM found;
DROP INDEX lockfence.mark_hash;
CREATE INDEX mark_hash ON lockfence.mark USING hash (resource) WHERE token > 5;
SELECT problem FROM found;
CALL mend();
SELECT * FROM found;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'lockfence.mark_hash'::regclass;
SELECT * FROM found;
CALL mend();
SELECT * FROM found;
ROLLBACK;

-- mark_missing
BEGIN;
ALTER EXTENSION lockfence DROP TABLE lockfence.mark;
ALTER TABLE lockfence.mark RENAME TO other;
SELECT severity, code, problem FROM found;
ALTER TABLE lockfence.state RENAME TO another;
SELECT severity, code, problem FROM found;
ROLLBACK;

-- mark_columns: one that was added, or altered
BEGIN;
ALTER TABLE lockfence.mark ADD COLUMN note text;
SELECT * FROM found;
SELECT lockfence.raise_mark('verify', 5, 'a column more does not disturb the fence');
SELECT token, resource, note FROM lockfence.mark WHERE resource = 'verify';
ALTER TABLE lockfence.mark DROP COLUMN note;
SELECT * FROM found;
SELECT lockfence.raise_mark('verify', 6, 'nor one less');
ROLLBACK;
BEGIN;
ALTER TABLE lockfence.state RENAME COLUMN value TO epoch;
SELECT * FROM found;
ROLLBACK;

-- mark_guard: off, gone, altered
BEGIN;
ALTER TABLE lockfence.state DISABLE TRIGGER ALL;
ALTER TABLE lockfence.mark ENABLE TRIGGER "~lockfence_marks";
DROP TRIGGER "~lockfence_mark" ON lockfence.mark;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;
DROP TRIGGER "~lockfence_mark" ON lockfence.mark;
CREATE TRIGGER "~lockfence_mark" BEFORE INSERT ON lockfence.mark FOR EACH ROW EXECUTE FUNCTION lockfence.guard_mark();
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;
ROLLBACK;

-- mark_writable: granted on the table, on a column, to everybody
BEGIN;
CREATE ROLE regress_verify_app LOGIN;
GRANT INSERT, DELETE, TRUNCATE ON lockfence.mark TO regress_verify_app;
GRANT UPDATE (value) ON lockfence.state TO regress_verify_app;
GRANT ALL ON lockfence.admin_log TO PUBLIC;
SELECT * FROM found WHERE target <> 'lockfence.admin_log'::regclass;
DO $$
BEGIN
	ASSERT (SELECT count(*) FROM found) = 4;
	CALL mend();
END
$$;
SELECT * FROM found;
ROLLBACK;

-- mark_writable: by a predefined role, from 14
BEGIN;
CREATE ROLE regress_verify_app LOGIN;
DO $$
BEGIN
	IF current_setting('server_version_num')::int < 140000 THEN
		RETURN;
	END IF;
	EXECUTE 'GRANT pg_write_all_data TO regress_verify_app';
	ASSERT (SELECT code FROM found WHERE remedy IS NULL) = 'mark_writable';
END
$$;
ROLLBACK;

-- owner_can_login: of the extension's tables; schema_owner, function_owner
BEGIN;
CREATE ROLE regress_verify_app LOGIN;
ALTER TABLE lockfence.state OWNER TO regress_verify_app;
ALTER SCHEMA lockfence OWNER TO regress_verify_app;
ALTER FUNCTION lockfence.guard_row() OWNER TO regress_verify_app;
SELECT * FROM found;
ROLLBACK;

-- schema_writable, schema_stranger: a function that present() calls would reach
BEGIN;
CREATE ROLE regress_verify_app LOGIN;
GRANT CREATE ON SCHEMA lockfence TO regress_verify_app, PUBLIC;
SET ROLE regress_verify_app;
CREATE FUNCTION lockfence.present(text, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION lockfence.guard_row(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TABLE lockfence.planted (id int GENERATED ALWAYS AS IDENTITY);
RESET ROLE;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT code FROM found;
ROLLBACK;

-- present_is_public, admin_is_public, internal_grant
BEGIN;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lockfence TO PUBLIC;
SELECT DISTINCT severity, code, left(remedy, 35), advice FROM found ORDER BY 1, 2, 3;
SELECT problem, remedy FROM found WHERE problem ~ 'may execute lockfence.(guard_row|reopen|drill)' ORDER BY 1;
CALL mend();
SELECT DISTINCT code FROM found;
ROLLBACK;

-- What reconcile() and drill() take of their callers is meant.
BEGIN;
CREATE ROLE regress_verify_keeper;
GRANT EXECUTE ON FUNCTION lockfence.reconcile(regclass), lockfence._raise_mark(text, lockfence.fence_token),
	lockfence._reconciled(regclass, bigint), lockfence.drill(regclass, jsonb, jsonb, text),
	lockfence._reset_mark(text, lockfence.fence_token) TO regress_verify_keeper;
SELECT * FROM found;
REVOKE EXECUTE ON FUNCTION lockfence.drill(regclass, jsonb, jsonb, text) FROM regress_verify_keeper;
SELECT * FROM found;
ROLLBACK;

-- guard_function
BEGIN;
CREATE OR REPLACE FUNCTION lockfence.guard_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;
ROLLBACK;

-- token_type
BEGIN;
ALTER DOMAIN lockfence.fence_token SET DEFAULT 1;
ALTER DOMAIN lockfence.fence_token ADD CONSTRAINT positive CHECK (value > 0);
ALTER DOMAIN lockfence.fence_token SET NOT NULL;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT problem FROM found;
ROLLBACK;

-- replica_role_grant, bypass_grant, preempt_grant, validator_grant: from 15
CREATE ROLE regress_verify_app LOGIN;
DO $$
BEGIN
	IF current_setting('server_version_num')::int < 150000 THEN
		RETURN;
	END IF;
	EXECUTE 'GRANT SET ON PARAMETER session_replication_role, lockfence.bypass, lockfence.enforcement TO regress_verify_app';
	EXECUTE 'GRANT SET, ALTER SYSTEM ON PARAMETER lockfence.preempt TO PUBLIC';
	EXECUTE 'GRANT SET ON PARAMETER lockfence.validator TO PUBLIC';
	ASSERT (SELECT array_agg(code ORDER BY code) FROM found WHERE remedy IS NULL)
		= '{bypass_grant,enforcement_grant,preempt_grant,preempt_grant,replica_role_grant,validator_grant}';
	EXECUTE 'REVOKE ALL ON PARAMETER session_replication_role, lockfence.bypass, lockfence.enforcement FROM regress_verify_app';
	EXECUTE 'REVOKE ALL ON PARAMETER lockfence.preempt, lockfence.validator FROM PUBLIC';
END
$$;
SELECT * FROM found;

-- default_validator_missing, default_validator_unfit
BEGIN;
SET LOCAL lockfence.validator = 'missing(text, bigint)';
SELECT * FROM found;
SET LOCAL lockfence.validator = 'no signature(';
SELECT * FROM found;
SET LOCAL lockfence.validator = 'pg_catalog.starts_with(text, text)';
SELECT * FROM found;
CREATE FUNCTION judge(text, lockfence.fence_token) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SET LOCAL lockfence.validator = 'test_verify_database.judge(text, lockfence.fence_token)';
SELECT * FROM found;
ROLLBACK;

-- bypass_setting, replica_role_setting
BEGIN;
ALTER ROLE regress_verify_app SET lockfence.bypass = on;
ALTER ROLE regress_verify_app SET lockfence.preempt = on;
ALTER ROLE ALL SET session_replication_role = replica;
DO $$
BEGIN
	EXECUTE format('ALTER ROLE regress_verify_app IN DATABASE %I SET session_replication_role = replica', current_database());
	EXECUTE format('ALTER DATABASE %I SET lockfence.bypass = yes', current_database());
END
$$;
SELECT severity, code, replace(problem, current_database(), 'THIS'), remedy, advice FROM found;
ALTER ROLE ALL RESET session_replication_role;
DO $$
BEGIN
	EXECUTE format('ALTER ROLE regress_verify_app IN DATABASE %I RESET session_replication_role', current_database());
	EXECUTE format('ALTER DATABASE %I RESET lockfence.bypass', current_database());
END
$$;
ALTER ROLE regress_verify_app SET lockfence.bypass = off;
ALTER ROLE regress_verify_app SET session_replication_role = origin;
SELECT * FROM found;
ROLLBACK;

-- enforcement_setting, enforcement_in_function, enforcement_is_advisory
ALTER ROLE regress_verify_app SET lockfence.enforcement = advisory;
CREATE FUNCTION trial(int) RETURNS int LANGUAGE sql SET lockfence.enforcement = 'Advisory' AS 'SELECT 1';
SET lockfence.enforcement = advisory;
SELECT * FROM found;
RESET lockfence.enforcement;
ALTER ROLE regress_verify_app SET lockfence.enforcement = declared;
DROP FUNCTION trial(int);
SELECT * FROM found;
ALTER ROLE regress_verify_app RESET lockfence.enforcement;

-- bypass_in_function, replica_role_in_function
CREATE FUNCTION past(int) RETURNS int LANGUAGE sql SET lockfence.bypass = on AS 'SELECT 1';
CREATE PROCEDURE past() LANGUAGE sql SET session_replication_role = replica AS 'SELECT 1';
SELECT * FROM found;
ALTER FUNCTION past(int) RESET lockfence.bypass;
ALTER PROCEDURE past() RESET session_replication_role;
SELECT * FROM found;

-- bypass_is_on
SET lockfence.bypass = on;
SELECT * FROM found;
RESET lockfence.bypass;
SELECT * FROM found;

-- A role without any privilege is told the same.
ALTER FUNCTION past(int) SET lockfence.bypass = on;
SET ROLE regress_verify_app;
SELECT severity, code FROM lockfence.verify() WHERE code = 'bypass_in_function';
RESET ROLE;

ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS;
DROP SCHEMA test_verify_database CASCADE;
DROP ROLE regress_verify_app;
