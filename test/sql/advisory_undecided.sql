-- An advisory fence changes no statement's outcome: what keeps it from deciding is reported, and the write goes on.  Each
-- case is an error on a fence that is not advisory.
\set SHOW_CONTEXT errors
CREATE SCHEMA test_undecided;
SET search_path = test_undecided;

-- The same fence twice: one table reports, the other refuses.
CREATE TABLE strict (id integer PRIMARY KEY, grp text, n integer DEFAULT 0, note text);
CREATE TABLE trial (LIKE strict INCLUDING ALL);
CREATE PROCEDURE fence(settings text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM lockfence.detach(f.target) FROM lockfence.fences f WHERE f.target IN ('trial'::regclass, 'strict'::regclass);
	EXECUTE format('SELECT lockfence.attach(''strict'', %s)', settings);
	EXECUTE format('SELECT lockfence.attach(''trial'', %s, enforcement => ''advisory'')', settings);
END
$$;
-- Runs a statement against both, and tells what came of it.
CREATE FUNCTION run(statement text) RETURNS TABLE (target text, outcome text) LANGUAGE plpgsql AS $$
DECLARE
	rows bigint;
BEGIN
	FOREACH target IN ARRAY ARRAY['strict', 'trial'] LOOP
		BEGIN
			EXECUTE format(statement, target);
			GET DIAGNOSTICS rows = ROW_COUNT;
			outcome := rows || ' rows';
		EXCEPTION WHEN OTHERS THEN
			outcome := SQLSTATE || ': ' || SQLERRM;
		END;
		RETURN NEXT;
	END LOOP;
END
$$;
CALL fence($$'undecided:{grp}', missing => 'allow'$$);
SET client_min_messages = log;

-- A row that names no resource: a null, an empty name, a long one
SELECT * FROM run($$INSERT INTO %I VALUES (1, NULL)$$);
\set SHOW_CONTEXT always
INSERT INTO trial VALUES (11, NULL);
\set SHOW_CONTEXT errors
SELECT * FROM run($$INSERT INTO %I VALUES (2, repeat('x', 1024))$$);
INSERT INTO strict VALUES (1, 'a'), (2, 'b');
SELECT * FROM run($$UPDATE %I SET grp = NULL WHERE id = 2$$);
SELECT * FROM run($$INSERT INTO %I VALUES (2, repeat('x', 1024)) ON CONFLICT (id) DO UPDATE SET grp = excluded.grp$$);
SET client_min_messages = warning;
CALL fence($$'{grp}', missing => 'allow'$$);
SET client_min_messages = log;
SELECT * FROM run($$INSERT INTO %I VALUES (3, '')$$);
-- ... for guarded functions too, of whose rows the report comes once
SET client_min_messages = warning;
CALL fence($$'undecided:{grp}', 'token'$$);
SET client_min_messages = log;
SELECT * FROM run($$SELECT lockfence.guarded_update(%1$L, '{"id": 1}', '{"grp": null}', 5)$$);

-- A fence whose columns are not there any more, or not what they were
BEGIN;
ALTER TABLE strict RENAME grp TO team;
ALTER TABLE trial RENAME grp TO team;
SELECT * FROM run($$INSERT INTO %I VALUES (4, 'a')$$);
SELECT * FROM run($$UPDATE %I SET note = 'x' WHERE id = 1$$);
SELECT * FROM run($$DELETE FROM %I WHERE id = 1$$);
SELECT * FROM run($$TRUNCATE %I$$);
SELECT * FROM run($$SELECT lockfence.guarded_update(%1$L, '{"id": 4}', '{"note": "y"}', 5)$$);
-- ... what only reads a fence has none to read
SELECT lockfence.resource_of('trial', t) FROM trial t;
ROLLBACK;
BEGIN;
ALTER TABLE strict DROP COLUMN token;
ALTER TABLE trial DROP COLUMN token;
SELECT * FROM run($$UPDATE %I SET note = 'x' WHERE id = 1$$);
ROLLBACK;
BEGIN;
ALTER TABLE strict ALTER COLUMN token TYPE text;
ALTER TABLE trial ALTER COLUMN token TYPE text;
SELECT * FROM run($$UPDATE %I SET note = 'x', token = 'y' WHERE id = 1$$);
ROLLBACK;
-- ... or whose arguments an owner has made up
BEGIN;
CREATE TABLE made (id integer);
CREATE TRIGGER made BEFORE INSERT ON made FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('enforcement=advisory', 'resource={');
INSERT INTO made VALUES (1);
DROP TRIGGER made ON made;
CREATE TRIGGER made BEFORE INSERT ON made FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('enforcement=advisory');
INSERT INTO made VALUES (2);
SELECT count(*) FROM made;
ROLLBACK;

-- A validator that is gone, that may not be called, or that fails
SET client_min_messages = warning;
CREATE FUNCTION fails(resource text, token bigint) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / (token - token) > 0';
CALL fence($$'undecided:{id}', 'token', validator => 'fails(text, bigint)'$$);
SET client_min_messages = log;
SELECT * FROM run($$INSERT INTO %I VALUES (5, 'a', 0, '', 5)$$);
BEGIN;
DROP FUNCTION fails(text, bigint);
SELECT * FROM run($$INSERT INTO %I VALUES (6, 'a', 0, '', 5)$$);
ROLLBACK;
BEGIN;
CREATE ROLE regress_undecided;
GRANT ALL ON SCHEMA test_undecided TO regress_undecided;
REVOKE EXECUTE ON FUNCTION fails(text, bigint) FROM PUBLIC;
ALTER TABLE strict OWNER TO regress_undecided;
ALTER TABLE trial OWNER TO regress_undecided;
SELECT * FROM run($$INSERT INTO %I VALUES (6, 'a', 0, '', 5)$$);
ROLLBACK;

-- A type whose output fails
SET client_min_messages = warning;
CREATE TYPE word;
CREATE FUNCTION word_in(cstring) RETURNS word LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION word_out(word) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'any_out';
CREATE TYPE word (INPUT = word_in, OUTPUT = word_out, LIKE = text);
ALTER TABLE strict ADD COLUMN w word;
ALTER TABLE trial ADD COLUMN w word;
CALL fence($$'undecided:{w}', missing => 'allow'$$);
SET client_min_messages = log;
SELECT * FROM run($$INSERT INTO %I (id, w) VALUES (7, 'a')$$);

-- A temporary table, in a transaction that must not write elsewhere
SET client_min_messages = warning;
CREATE TEMP TABLE strict_temp (id integer, token lockfence.fence_token);
CREATE TEMP TABLE trial_temp (id integer, token lockfence.fence_token);
SELECT lockfence.attach('strict_temp', 'undecided:temp', 'token');
SELECT lockfence.attach('trial_temp', 'undecided:temp', 'token', enforcement => 'advisory');
SET client_min_messages = log;
BEGIN READ ONLY;
SELECT * FROM run($$INSERT INTO %I_temp VALUES (1, 3)$$);
ROLLBACK;

-- The table of marks is not as it was
SET client_min_messages = warning;
CALL fence($$'undecided:{id}', 'token'$$);
BEGIN;
ALTER EVENT TRIGGER lockfence_before_ddl DISABLE;
ALTER EVENT TRIGGER lockfence_after_ddl DISABLE;
ALTER TABLE lockfence.mark RENAME TO mark_away;
SET LOCAL client_min_messages = log;
SELECT * FROM run($$INSERT INTO %I VALUES (8, 'a', 0, '', 5)$$);
ROLLBACK;

-- What ends the session's statement from outside is not the fence's to report.
SET client_min_messages = warning;
CREATE FUNCTION slow(resource text, token bigint) RETURNS boolean LANGUAGE sql AS 'SELECT pg_sleep(600) IS NULL';
CALL fence($$'undecided:{id}', 'token', validator => 'slow(text, bigint)'$$);
SET statement_timeout = '10ms';
INSERT INTO trial VALUES (9, 'a', 0, '', 5);
\echo :LAST_ERROR_SQLSTATE
RESET statement_timeout;

-- What was accepted before stays accepted; a token that was not is not stored, lest it stands for a mark.
CALL fence($$'undecided:{grp}', 'token', missing => 'allow'$$);
BEGIN;
INSERT INTO trial VALUES (10, 'held', 0, '', 6);
SET LOCAL client_min_messages = log;
INSERT INTO trial VALUES (12, NULL, 0, '', 7);
SELECT * FROM lockfence.presented();
COMMIT;
SET client_min_messages = warning;
SELECT token FROM lockfence.mark WHERE resource = 'undecided:held';
SELECT token FROM trial WHERE id IN (10, 12) ORDER BY id;
UPDATE trial SET grp = NULL, token = 8 WHERE id = 10;
SELECT token FROM trial WHERE id = 10;
DROP SCHEMA test_undecided CASCADE;
