-- lockfence_validate without a lock service: who may ask, who may say whom, and what is wrong with settings.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE EXTENSION lockfence_validate;
\c -
SET client_min_messages = error;

-- Nothing that a session sets before the library is loaded, or after, comes to count.
SET lockfence_validate.url = 'http://127.0.0.1:9/';
SET lockfence_validate.on_unavailable = 'open';
SELECT lockfence.validate('validate:a', 10);
\echo :LAST_ERROR_SQLSTATE
SHOW lockfence_validate.url;
SHOW lockfence_validate.on_unavailable;
SET lockfence_validate.url = 'http://127.0.0.1:9/';
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM pg_settings WHERE name LIKE 'lockfence\_validate.%' AND context <> 'sighup';
SELECT name, setting, unit FROM pg_settings WHERE name LIKE 'lockfence\_validate.%' ORDER BY name COLLATE "C";

-- Arguments.
SELECT lockfence.validate(NULL, 10) IS NULL AND lockfence.validate('validate:a', NULL) IS NULL AS nothing_asked;
SELECT lockfence.validate('', 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.validate(repeat('x', 1025), 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.validate('validate:a', 0);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM lockfence.validate_detail('validate:a', 10);
\echo :LAST_ERROR_SQLSTATE

-- For the administrator; a fence's validator is called as the fence's owner, for every role that writes.
CREATE ROLE regress_validate_owner;
CREATE ROLE regress_validate_writer;
CREATE SCHEMA test_validate AUTHORIZATION regress_validate_owner;
SET ROLE regress_validate_writer;
SELECT lockfence.validate('validate:a', 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.validate_detail('validate:a', 10);
\echo :LAST_ERROR_SQLSTATE
-- PostgreSQL words it by version
\set VERBOSITY sqlstate
SHOW lockfence_validate.url;
\set VERBOSITY default
RESET ROLE;
CREATE TABLE test_validate.item (id integer PRIMARY KEY);
SELECT lockfence.attach('test_validate.item', 'validate:{id}', 'token', validator => 'lockfence.validate(text, lockfence.fence_token)');
ALTER TABLE test_validate.item OWNER TO regress_validate_owner;
GRANT USAGE ON SCHEMA test_validate TO regress_validate_writer;
GRANT INSERT ON test_validate.item TO regress_validate_writer;
SET ROLE regress_validate_writer;
INSERT INTO test_validate.item VALUES (1, 10);
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
GRANT EXECUTE ON FUNCTION lockfence.validate(text, lockfence.fence_token) TO regress_validate_owner;
SET ROLE regress_validate_writer;
INSERT INTO test_validate.item VALUES (1, 10);
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

-- As the default validator.
SET lockfence.validator = 'lockfence.validate(text, lockfence.fence_token)';
SELECT lockfence.present('validate:b', 10);
\echo :LAST_ERROR_SQLSTATE
RESET lockfence.validator;
SELECT count(*) FROM lockfence.mark WHERE resource LIKE 'validate:%';

DROP SCHEMA test_validate CASCADE;
DROP EXTENSION lockfence_validate;

-- Default privileges give its functions to no role.
BEGIN;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_validate_owner, regress_validate_writer, PUBLIC;
CREATE EXTENSION lockfence_validate;
SELECT proname FROM pg_proc, aclexplode(proacl) AS a WHERE proname LIKE 'validate%' AND a.grantee <> proowner;
ROLLBACK;
DROP ROLE regress_validate_owner, regress_validate_writer;
