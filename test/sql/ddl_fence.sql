-- fence_ddl(): which commands need a grant, of what and presented how; what verify() finds.  In a database of its own,
-- since other tests run DDL.
\set SHOW_CONTEXT never
\set VERBOSITY default
SET client_min_messages = warning;
SELECT current_database() AS back \gset
CREATE DATABASE regression_ddl_fence;
\c regression_ddl_fence
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET lockfence.unknown_resource = notice;
CREATE EXTENSION lockfence;
CREATE TABLE job (id int PRIMARY KEY, state text);
CREATE VIEW finding AS SELECT severity, code, problem, remedy, advice FROM lockfence.verify() WHERE code ~ 'ddl|event';

-- not a name
SELECT lockfence.fence_ddl(NULL);
SELECT lockfence.fence_ddl('');
SELECT lockfence.unfence_ddl();

SELECT lockfence.fence_ddl('migrations{1}');
SELECT lockfence.fence_ddl('migrations');
TABLE lockfence.ddl_fence;
TABLE finding;

-- without a token, by a token without a resource, by one of another resource
ALTER TABLE job ADD note text;
BEGIN;
SELECT lockfence.present(900);
ALTER TABLE job ADD note text;
ROLLBACK;
BEGIN;
SET LOCAL client_min_messages = notice;
SELECT lockfence.present('migrations', 900);
ALTER TABLE job ADD note text;
ROLLBACK;

-- the holder; the name is one that a fence can make
SET client_min_messages = notice;
BEGIN;
SELECT lockfence.present('migrations{1}', 42);
ALTER TABLE job ADD note text;
CREATE TABLE made (id int);
COMMIT;
SET client_min_messages = warning;
SELECT resource, token FROM lockfence.mark;

-- what a transaction has presented counts within its subtransaction
BEGIN;
SAVEPOINT one;
SELECT lockfence.present('migrations{1}', 42);
ROLLBACK TO one;
DROP TABLE made;
ROLLBACK;

-- the next holder, and the one that wakes up late
SELECT lockfence.present('migrations{1}', 43);
BEGIN;
SELECT lockfence.present('migrations{1}', 42);
ROLLBACK;
-- ... not even by a function
DO $$
BEGIN
	PERFORM lockfence.present('migrations{1}', 42);
	EXECUTE 'DROP TABLE made';
END
$$;

-- every command, and those that only look like one; with a grant they fail, if at all, by themselves
BEGIN;
SELECT lockfence.present('migrations{1}', 43);
CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		EXECUTE command;
		RAISE EXCEPTION USING ERRCODE = 'LFEND';
	EXCEPTION
		WHEN SQLSTATE 'LFEND' THEN RETURN 'passes';
		WHEN SQLSTATE 'LF002' THEN RETURN 'needs a grant';
		WHEN OTHERS THEN RETURN SQLERRM;
	END;
END
$$;
CREATE TABLE command (place int GENERATED ALWAYS AS IDENTITY, command text);
CREATE MATERIALIZED VIEW numbers AS SELECT 1 AS number;
CREATE SEQUENCE counter;
CREATE ROLE regress_ddl_fence;
COMMIT;
INSERT INTO command (command) VALUES
	('CREATE TABLE new (id int)'),
	('CREATE TABLE new AS SELECT 1'),
	('CREATE SCHEMA new CREATE TABLE inner_table (id int)'),
	('ALTER TABLE job ADD extra text'),
	('ALTER TABLE job RENAME state TO condition'),
	('ALTER SEQUENCE counter RESTART'),
	('CREATE INDEX ON job (state)'),
	('CREATE OR REPLACE VIEW seen AS SELECT 1'),
	('CREATE FUNCTION new() RETURNS int LANGUAGE sql AS ''SELECT 1'''),
	('DROP TABLE job'),
	('DROP TABLE IF EXISTS nowhere'),
	('GRANT SELECT ON job TO regress_ddl_fence'),
	('ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO regress_ddl_fence'),
	('COMMENT ON TABLE job IS ''work'''),
	('DROP OWNED BY regress_ddl_fence'),
	('SELECT lockfence.attach(''job'')'),
	('CREATE EXTENSION lockfence_pgtap CASCADE'),
	('ALTER EXTENSION lockfence UPDATE'),
	('DROP EXTENSION lockfence CASCADE'),
	-- they change no definition
	('REFRESH MATERIALIZED VIEW numbers'),
	('REINDEX TABLE job'),
	('ANALYZE job'),
	('TRUNCATE job'),
	('SELECT setval(''counter'', 5)'),
	-- not of this database
	('ALTER ROLE regress_ddl_fence LOGIN'),
	-- of this session
	('CREATE TEMP TABLE mine (id int PRIMARY KEY)'),
	('CREATE TABLE pg_temp.mine (id serial)'),
	('CREATE TEMP TABLE mine AS SELECT 1'),
	('CREATE TEMP VIEW mine AS SELECT 1'),
	('CREATE TEMP SEQUENCE mine');
SELECT place, command, attempt(command) FROM command ORDER BY place;
SELECT 1 AS number INTO new;
SELECT 1 AS number INTO TEMP mine;
DROP TABLE mine;

-- a temporary table, of the name of one that stays
CREATE TEMP TABLE job (id int);
ALTER TABLE job ADD note text;
CREATE INDEX mine ON job (id);
ALTER TABLE job RENAME note TO remark;
ALTER INDEX mine RENAME TO mine_too;
DROP INDEX mine_too;
CREATE TABLE job (id int);
ALTER TABLE public.job ADD extra text;
DROP TABLE job, public.job;
DROP TABLE job;
DROP TABLE job;

-- the scripts of an extension are part of the command
BEGIN;
SELECT lockfence.present('migrations{1}', 43);
CREATE EXTENSION lockfence_lease;
COMMIT;
SELECT count(*) FROM pg_extension WHERE extname = 'lockfence_lease';

-- a superuser's exemption; for replicas too
SET session_replication_role = replica;
CREATE TABLE new (id int);
RESET session_replication_role;
BEGIN;
SET LOCAL lockfence.bypass = on;
CREATE TABLE new (id int);
COMMIT;

-- a trial: reported, not refused, and the record may be gone
BEGIN;
SET LOCAL lockfence.enforcement = advisory;
CREATE TABLE tried (id int);
SELECT lockfence.present('migrations{1}', 42);
DROP TABLE tried;
DELETE FROM lockfence.ddl_fence;
CREATE TABLE tried (id int);
ROLLBACK;

-- it is the last that is taken away
DROP EXTENSION lockfence_lease;
BEGIN;
SELECT lockfence.present('migrations{1}', 43);
DROP EXTENSION lockfence_lease;
\set VERBOSITY terse
DROP EXTENSION lockfence;
\set VERBOSITY default
ROLLBACK;

-- verify(): a trigger that is disabled, altered, missing, or renamed
ALTER EVENT TRIGGER lockfence_ddl_start DISABLE;
TABLE finding;
SELECT remedy FROM finding WHERE remedy IS NOT NULL \gexec
ALTER EVENT TRIGGER lockfence_ddl_end ENABLE REPLICA;
ALTER EVENT TRIGGER lockfence_ddl_start RENAME TO "Start";
TABLE finding;
SELECT remedy FROM finding WHERE remedy IS NOT NULL \gexec
DROP EVENT TRIGGER "Start";
TABLE finding;
SELECT remedy FROM finding WHERE remedy IS NOT NULL \gexec
TABLE finding;
DROP EVENT TRIGGER lockfence_ddl_start;
CREATE EVENT TRIGGER lockfence_ddl_start ON ddl_command_start WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION lockfence.admit_ddl();
TABLE finding;
SELECT lockfence.unfence_ddl(), lockfence.fence_ddl('migrations');
TABLE finding;

-- the record is gone
BEGIN;
DELETE FROM lockfence.ddl_fence;
TABLE finding;
SAVEPOINT refused;
CREATE TABLE new (id int);
ROLLBACK TO refused;
SELECT lockfence.fence_ddl('migrations');
ROLLBACK;

-- two are needed where a restore has brought a second
BEGIN;
INSERT INTO lockfence.ddl_fence VALUES ('other');
SELECT lockfence.present('migrations', 1);
CREATE TABLE both_presented (id int);
ROLLBACK;
BEGIN;
INSERT INTO lockfence.ddl_fence VALUES ('other');
SELECT lockfence.present('migrations', 1), lockfence.present('other', 1);
CREATE TABLE both_presented (id int);
ROLLBACK;

-- a guarded function's token is not for the DDL of its table's triggers
BEGIN;
SELECT lockfence.present('migrations', 1);
CREATE TABLE guarded (id int PRIMARY KEY, note text);
SELECT lockfence.attach('guarded');
INSERT INTO guarded VALUES (1, 'new');
CREATE FUNCTION make_table() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE made_by_trigger (id int);
	RETURN new;
END
$$;
CREATE TRIGGER make_table BEFORE UPDATE ON guarded FOR EACH ROW EXECUTE FUNCTION make_table();
SELECT lockfence.guarded_update('guarded', '{"id": 1}', '{"note": "set"}', 900);
SELECT 'made_by_trigger'::regclass;
COMMIT;
BEGIN;
SELECT lockfence.guarded_update('guarded', '{"id": 1}', '{"note": "set"}', 900);
ROLLBACK;

-- privileges: an administrator's
SET ROLE regress_ddl_fence;
SELECT lockfence.fence_ddl('migrations');
SELECT lockfence.unfence_ddl();
SELECT lockfence.admit_ddl();
TABLE lockfence.ddl_fence;
RESET ROLE;
BEGIN;
SET LOCAL lockfence.bypass = on;
GRANT EXECUTE ON FUNCTION lockfence.fence_ddl(text), lockfence.unfence_ddl() TO regress_ddl_fence;
COMMIT;
SET ROLE regress_ddl_fence;
SELECT lockfence.unfence_ddl(), lockfence.fence_ddl('migrations');
SELECT lockfence.unfence_ddl();
RESET ROLE;
SELECT role = session_user AS me, action, resource, reason FROM lockfence.admin_log ORDER BY id;
SELECT evtname FROM pg_event_trigger WHERE evtname ~ '^lockfence_ddl';
CREATE TABLE without_grant (id int);

\c :back
DROP DATABASE regression_ddl_fence;
DROP ROLE regress_ddl_fence;
