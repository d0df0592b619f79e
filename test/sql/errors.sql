-- Every SQLSTATE of the fence, with all that a client is told: message, detail, hint, table.
CREATE SCHEMA test_errors;
SET search_path = test_errors;
SET client_min_messages = warning;
CREATE FUNCTION try(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text, OUT in_table text, OUT in_schema text)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	code := 'none';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
		hint = PG_EXCEPTION_HINT, in_table = TABLE_NAME, in_schema = SCHEMA_NAME;
END
$$;
CREATE FUNCTION no(text, lockfence.fence_token) RETURNS boolean LANGUAGE sql AS 'SELECT $2 < 20';
CREATE TABLE item (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'errors:{id}', 'token', validator => 'no(text, lockfence.fence_token)');
CREATE TABLE job (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('job');
CREATE TABLE ledger (id integer);
SELECT lockfence.attach('ledger', 'errors:ledger', repeat => 'reject');
INSERT INTO item VALUES (1, 'new', 10);
INSERT INTO job VALUES (1, 'new', 10);
SELECT lockfence.present('errors:ledger', 10);
\pset expanded on
\pset format unaligned
-- stale_fence_token: lower than the mark, in a row, used, of an epoch that ended
SELECT * FROM try('UPDATE item SET token = 9');
SELECT * FROM try('UPDATE job SET fence = 9');
SELECT * FROM try('SELECT lockfence.present(''errors:1'', 9)');
BEGIN;
SELECT lockfence.present('errors:ledger', 10);
SELECT * FROM try('INSERT INTO ledger VALUES (1)');
ROLLBACK;
BEGIN;
SELECT lockfence.set_epoch(1, 'test');
SELECT * FROM try('UPDATE item SET token = 11');
-- unknown_fence_epoch
SELECT * FROM try('UPDATE item SET token = 562949953421313');
ROLLBACK;
-- missing_fence_token
SELECT * FROM try('UPDATE item SET note = ''x''');
SELECT * FROM try('UPDATE job SET note = ''x''');
SELECT * FROM try('INSERT INTO ledger VALUES (1)');
-- ... after a token that was presented in autocommit, and so was lost; but not after one that was of use, nor later
SELECT lockfence.present(11);
SELECT hint FROM try('UPDATE item SET note = ''x''');
SELECT hint FROM try('UPDATE item SET note = ''x''');
BEGIN;
SELECT lockfence.present(10);
UPDATE job SET note = 'x';
COMMIT;
SELECT hint FROM try('UPDATE job SET note = ''x''');
-- invalid_fence_token
SELECT * FROM try('UPDATE item SET token = NULL');
SELECT * FROM try('UPDATE job SET fence = -1');
SELECT * FROM try('SELECT lockfence.present(''errors:1'', NULL)');
-- conflicting_fence_tokens
BEGIN;
SELECT lockfence.present(11);
SELECT * FROM try('UPDATE item SET token = 12');
ROLLBACK;
-- fence_token_refused
SELECT * FROM try('UPDATE item SET token = 20');
-- unfenceable_operation
SELECT * FROM try('TRUNCATE item');
SELECT * FROM try('SELECT lockfence.attach(''pg_catalog.pg_class'')');
SELECT * FROM try('DELETE FROM lockfence.mark');
-- unchecked_fence_token, at commit
BEGIN;
SET LOCAL lockfence.unchecked_token = error;
SELECT lockfence.present(9);
CREATE TABLE unfenced (id integer);
COMMIT;
\echo :LAST_ERROR_SQLSTATE
-- expired_fence_token; that of a commit is in test/t
SET TimeZone = 'UTC';
SELECT * FROM try('SELECT lockfence.present(''errors:1'', 19, ''2020-01-01 12:00:00+00'')');
-- The class is none that clients retry, and a handler may name the code alone.
DO $$
BEGIN
	UPDATE test_errors.item SET token = 9;
EXCEPTION WHEN SQLSTATE 'LF001' THEN
	RAISE INFO 'stale';
END
$$;
DROP SCHEMA test_errors CASCADE;
