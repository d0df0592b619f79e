-- Who may do what, and what a caller cannot plant in the fence's way.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE regress_lf_owner;
CREATE ROLE regress_lf_app;
CREATE ROLE regress_lf_other;
CREATE SCHEMA test_privileges;
GRANT USAGE, CREATE ON SCHEMA test_privileges TO regress_lf_owner, regress_lf_app;
GRANT USAGE ON SCHEMA test_privileges TO regress_lf_other;
SET search_path = test_privileges;

-- What PUBLIC may execute: it reads, and can neither move a mark nor make a fence.
SELECT p.oid::regprocedure AS executable FROM pg_proc p
WHERE pronamespace = 'lockfence'::regnamespace AND has_function_privilege('regress_lf_other', p.oid, 'EXECUTE')
	AND proname !~ '^_' AND proname NOT IN ('verify')
ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT p.oid::regprocedure AS not_executable FROM pg_proc p
WHERE pronamespace = 'lockfence'::regnamespace AND NOT has_function_privilege('regress_lf_other', p.oid, 'EXECUTE')
ORDER BY p.oid::regprocedure::text COLLATE "C";
-- Tables: the marks and the state may be read, the log is the administrator's; no role writes.
SELECT relname, has_table_privilege('regress_lf_other', oid, 'SELECT') AS reads,
	has_table_privilege('regress_lf_other', oid, 'INSERT, UPDATE, DELETE, TRUNCATE') AS writes
FROM pg_class WHERE relnamespace = 'lockfence'::regnamespace AND relkind IN ('r', 'v')
	AND relname IN ('mark', 'state', 'admin_log', 'fences', 'prepared_holds') ORDER BY relname;
-- Every function in SQL or plpgsql has a search path of its own.
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_language l ON l.oid = prolang
WHERE pronamespace = 'lockfence'::regnamespace AND lanname IN ('sql', 'plpgsql')
	AND coalesce(array_to_string(proconfig, ' '), '') !~ '^search_path=pg_catalog, pg_temp( |$)';
-- Everything has a comment.
SELECT p.oid::regprocedure FROM pg_proc p
WHERE pronamespace = 'lockfence'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL;

CREATE TABLE app_data (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('app_data', 'privileges:{id}', 'token');
GRANT SELECT, INSERT, UPDATE, DELETE ON app_data TO regress_lf_app;
GRANT SELECT ON app_data TO regress_lf_other;
INSERT INTO app_data VALUES (1, 'new', 10);

-- present() is not for every role: one that sends 2^63 - 1 locks out all holders
SET ROLE regress_lf_app;
SELECT lockfence.present(10);
SELECT lockfence.present('privileges:1', 9223372036854775807);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('app_data', '{"id": 1}', '{"note": "x"}', 10);
SELECT lockfence.guarded_delete('app_data', '{"id": 1}', 10);
SELECT lockfence.raise_mark('privileges:1', 100, 'x');
SELECT lockfence.reset_mark('privileges:1', 1, 'x');
SELECT lockfence._reset_mark('privileges:1', 1);
SELECT lockfence._raise_mark('privileges:1', 100);
SELECT lockfence._fold_mark('privileges:1', 11);
SELECT lockfence._log('x', 'x', 1, 1, 'x');
SELECT lockfence._set_state('epoch', 1);
SELECT lockfence.set_epoch(1, 'x');
SELECT lockfence.reset_floor(1, 'x');
SELECT lockfence.prune('0');
SELECT lockfence.reconcile('app_data');
INSERT INTO lockfence.mark VALUES (1, now(), 'privileges:x');
UPDATE lockfence.mark SET token = 1 WHERE resource = 'privileges:1';
DELETE FROM lockfence.mark WHERE resource = 'privileges:1';
TRUNCATE lockfence.mark;
SELECT * FROM lockfence.mark WHERE resource = 'privileges:1' FOR SHARE;
INSERT INTO lockfence.state VALUES ('epoch', 3);
SELECT * FROM lockfence.admin_log;
-- ... but a write that its table's privileges allow presents its token in the column, without any of them
UPDATE app_data SET note = 'app', token = 11;
-- ... and who could read the mark could present it, and be taken for its holder
SELECT token FROM lockfence.mark WHERE resource = 'privileges:1';
SELECT lockfence.is_current('privileges:1', 10);
SELECT count(*) FROM lockfence.presented();
RESET ROLE;
GRANT EXECUTE ON FUNCTION lockfence.present(lockfence.fence_token), lockfence.present(text, lockfence.fence_token),
	lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token),
	lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token) TO regress_lf_app, regress_lf_other;

-- a temporary table that shadows the marks, and functions and operators planted in the search path
SET ROLE regress_lf_app;
CREATE TEMP TABLE mark (token bigint, advanced_at timestamptz, resource text PRIMARY KEY);
CREATE TEMP TABLE state (name text, value bigint);
INSERT INTO mark VALUES (1, now(), 'privileges:1');
CREATE FUNCTION test_privileges.texteq(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION test_privileges.int4eq_never(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR test_privileges.= (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = test_privileges.int4eq_never);
CREATE FUNCTION test_privileges.now() RETURNS timestamptz LANGUAGE sql AS $$SELECT 'infinity'::timestamptz$$;
SET search_path = pg_temp, test_privileges, lockfence, pg_catalog;
UPDATE test_privileges.app_data SET note = 'planted', token = 1;
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present('privileges:1', 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.is_current('privileges:1', 10);
-- ... guarded writes name their operators
SELECT lockfence.guarded_update('test_privileges.app_data', '{"id": 1}', '{"note": "guarded"}', 11);
SELECT id, note, token FROM test_privileges.app_data;
RESET search_path;
DROP TABLE pg_temp.mark, pg_temp.state;
RESET ROLE;
-- ... nor for an administrator who has them in the path
SET search_path = test_privileges, pg_catalog;
SELECT lockfence.raise_mark('privileges:2', 5, 'planted');
SELECT advanced_at < 'infinity' AS at_now FROM lockfence.mark WHERE resource OPERATOR(pg_catalog.=) 'privileges:2';
CREATE TABLE app_more (id integer PRIMARY KEY);
SELECT lockfence.attach('app_more', 'privileges:more');
SELECT count(*) FROM lockfence.fences WHERE target OPERATOR(pg_catalog.=) 'app_more'::regclass;
SELECT lockfence.detach('app_more');
DROP OPERATOR test_privileges.= (integer, integer);
DROP FUNCTION test_privileges.int4eq_never(integer, integer), test_privileges.now(), test_privileges.texteq(text, text);
SET search_path = test_privileges;

-- row-level security on the mark table, even forced, does not blind the fence
BEGIN;
ALTER EVENT TRIGGER lockfence_before_ddl DISABLE;
ALTER EVENT TRIGGER lockfence_after_ddl DISABLE;
ALTER TABLE lockfence.mark ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY blind ON lockfence.mark USING (false);
GRANT SELECT ON lockfence.mark TO regress_lf_app;
SET LOCAL ROLE regress_lf_app;
SELECT count(*) FROM lockfence.mark;
SAVEPOINT s;
UPDATE app_data SET note = 'blinded', token = 1;
ROLLBACK TO s;
SELECT lockfence.present('privileges:1', 1);
ROLLBACK TO s;
SELECT lockfence.is_current('privileges:1', 1);
ROLLBACK;
-- ... nor does it matter that the role may not read the marks
BEGIN;
SET LOCAL ROLE regress_lf_app;
UPDATE app_data SET note = 'unprivileged', token = 12;
SAVEPOINT s;
UPDATE app_data SET note = 'unprivileged', token = 11;
ROLLBACK;

-- guarded writes are the caller's: table and column privileges
SET ROLE regress_lf_other;
SELECT lockfence.guarded_update('app_data', '{"id": 1}', '{"note": "other"}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_delete('app_data', '{"id": 1}', 20);
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
SELECT token FROM lockfence.mark WHERE resource = 'privileges:1';
GRANT UPDATE (note) ON app_data TO regress_lf_other;
SET ROLE regress_lf_other;
SELECT lockfence.guarded_update('app_data', '{"id": 1}', '{"id": 2}', 20);
SELECT lockfence.guarded_update('app_data', '{"id": 1}', '{"note": "other"}', 20);
SELECT * FROM app_data;
RESET ROLE;
-- ... and row-level security
ALTER TABLE app_data ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON app_data TO regress_lf_app USING (note <> 'secret') WITH CHECK (note <> 'forbidden');
INSERT INTO app_data VALUES (5, 'secret', 20);
SET ROLE regress_lf_app;
SELECT lockfence.guarded_update('app_data', '{"id": 5}', '{"note": "x"}', 20);
SELECT lockfence.guarded_delete('app_data', '{"id": 5}', 20);
SELECT lockfence.guarded_update('app_data', '{"id": 1}', '{"note": "forbidden"}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('app_data', '{"id": 1}', '{"note": "allowed"}', 20);
-- ... also by a plan that was made for another role
RESET ROLE;
SELECT lockfence.guarded_update('app_data', '{"id": 5}', '{"note": "secret"}', 20);
SET ROLE regress_lf_app;
SELECT lockfence.guarded_update('app_data', '{"id": 5}', '{"note": "x"}', 20);
RESET ROLE;
SELECT * FROM app_data ORDER BY id;

-- attach(): for the owner of the table, once the guards are granted
CREATE TABLE foreign_data (id integer PRIMARY KEY, token bigint);
GRANT ALL ON foreign_data TO regress_lf_app;
GRANT SELECT ON foreign_data TO regress_lf_other;
SET ROLE regress_lf_app;
CREATE TABLE own_data (id integer PRIMARY KEY, secret text);
INSERT INTO own_data VALUES (42, 'x');
SELECT lockfence.attach('own_data');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
GRANT EXECUTE ON FUNCTION lockfence.guard_row(), lockfence.guard_truncate() TO regress_lf_app;
SET ROLE regress_lf_app;
SELECT lockfence.attach('own_data', token_column => 'token');
SELECT lockfence.attach('foreign_data');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('foreign_data', 'privileges:x', 'token');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'foreign_data'::regclass;
SET ROLE regress_lf_other;
SELECT lockfence.attach('foreign_data', 'privileges:x', 'token');
\echo :LAST_ERROR_SQLSTATE
SET ROLE regress_lf_app;
SELECT lockfence.detach('app_data');
\echo :LAST_ERROR_SQLSTATE
UPDATE own_data SET token = 10;
SELECT * FROM own_data;
-- ... its owner may take it off: the threat model says so
SELECT lockfence.detach('own_data');
SELECT lockfence.attach('own_data', token_column => 'token');
-- A validator has to be the caller's to execute, and the table owner's.
RESET ROLE;
CREATE FUNCTION private_validator(text, lockfence.fence_token) RETURNS boolean LANGUAGE sql AS 'SELECT true';
REVOKE ALL ON FUNCTION private_validator(text, lockfence.fence_token) FROM PUBLIC;
SET ROLE regress_lf_app;
CREATE TABLE validated (id integer);
SELECT lockfence.attach('validated', 'privileges:v', 'token', validator => 'private_validator(text, lockfence.fence_token)');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
SELECT lockfence.attach('validated', 'privileges:v', 'token', validator => 'private_validator(text, lockfence.fence_token)');
INSERT INTO validated VALUES (1, 5);
\echo :LAST_ERROR_SQLSTATE

-- messages do not tell keys that the caller may not read
GRANT UPDATE (secret), DELETE ON own_data TO regress_lf_other;
SET ROLE regress_lf_other;
SELECT id FROM own_data;
UPDATE own_data SET secret = 'guess';
DELETE FROM own_data;
RESET ROLE;
GRANT SELECT (id) ON own_data TO regress_lf_other;
SET ROLE regress_lf_other;
UPDATE own_data SET secret = 'guess';
RESET ROLE;
-- ... with row-level security on, a role under it is told no row's
ALTER TABLE own_data ENABLE ROW LEVEL SECURITY;
CREATE POLICY every ON own_data TO regress_lf_other USING (true);
SET ROLE regress_lf_other;
UPDATE own_data SET secret = 'guess';
RESET ROLE;

DROP SCHEMA test_privileges CASCADE;
DROP OWNED BY regress_lf_owner, regress_lf_app, regress_lf_other;
DROP ROLE regress_lf_owner, regress_lf_app, regress_lf_other;
