-- The hash index of the marks makes reading quicker, and decides nothing: whatever has become of it, a mark is found.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_mark_hash;
-- Which indexes this transaction has read.
CREATE FUNCTION test_mark_hash.reads() RETURNS TABLE (hash boolean, key boolean) LANGUAGE sql AS $$
	SELECT pg_stat_get_xact_numscans(to_regclass('lockfence.mark_hash')) > 0,
		pg_stat_get_xact_numscans('lockfence.mark_pkey'::regclass) > 0
$$;
SELECT lockfence.present('hash:a', 10);
-- A new session has no idea where marks are.  It reads in a transaction of its own.
\set reads 'SELECT * FROM test_mark_hash.reads();'
\set judge 'BEGIN; SAVEPOINT s; SELECT lockfence.present(''hash:a'', 9); ROLLBACK TO s; SELECT lockfence.present(''hash:a'', 10); SELECT lockfence.present(''hash:a'', 11);' :reads 'ROLLBACK;'

\c -
:judge
-- "No mark" is for the primary key to tell.
\c -
BEGIN;
SELECT lockfence.present('hash:b', 1);
:reads
ROLLBACK;

-- gone
\c -
BEGIN;
DROP INDEX lockfence.mark_hash;
COMMIT;
:judge

-- (the event trigger would not let them be)
ALTER EVENT TRIGGER lockfence_after_ddl DISABLE;
-- something else of that name: no hash index, not of the resource, not of all marks, of another table, no index
CREATE INDEX mark_hash ON lockfence.mark (resource);
:judge
DROP INDEX lockfence.mark_hash;
CREATE INDEX mark_hash ON lockfence.mark USING hash (advanced_at);
\c -
:judge
DROP INDEX lockfence.mark_hash;
CREATE INDEX mark_hash ON lockfence.mark USING hash (resource) WHERE token > 100;
\c -
:judge
DROP INDEX lockfence.mark_hash;
CREATE INDEX mark_hash ON lockfence.state USING hash (name);
\c -
:judge
DROP INDEX lockfence.mark_hash;
CREATE VIEW lockfence.mark_hash AS SELECT resource FROM lockfence.mark;
\c -
:judge
DROP VIEW lockfence.mark_hash;

-- made again: a session that knew there was none notices
\c -
SELECT lockfence.is_current('hash:a', 10);
CREATE INDEX mark_hash ON lockfence.mark USING hash (resource);
ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS;
BEGIN;
SELECT lockfence.present('hash:a', 11);
SELECT hash FROM test_mark_hash.reads();
ROLLBACK;

-- not valid, and valid again
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'lockfence.mark_hash'::regclass;
\c -
:judge
REINDEX INDEX lockfence.mark_hash;
\c -
:judge

-- It misses a mark.
UPDATE pg_index SET indisready = false WHERE indexrelid = 'lockfence.mark_hash'::regclass;
SELECT lockfence.present('hash:c', 10);
UPDATE pg_index SET indisready = true WHERE indexrelid = 'lockfence.mark_hash'::regclass;
\c -
BEGIN;
SELECT lockfence.present('hash:c', 10);
:reads
ROLLBACK;
SELECT lockfence.present('hash:c', 9);
REINDEX INDEX lockfence.mark_hash;

-- Two names that hash alike: the mark of the one is not the other's.
SELECT min(name) AS a, max(name) AS b
FROM (SELECT 'hash:' || n AS name FROM generate_series(1, 500000) n) AS names
GROUP BY hashtext(name) HAVING count(*) > 1 LIMIT 1 \gset
SELECT :'a' < :'b' AS found;
\set VERBOSITY sqlstate
SELECT lockfence.present(:'a', 20);
\c -
SELECT lockfence.present(:'b', 5);
\c -
SELECT lockfence.present(:'a', 5);
SELECT lockfence.present(:'b', 4);
SELECT lockfence.present(:'a', 21);
SELECT lockfence.present(:'b', 6);

-- A mark that goes up and up stays on its page.
CREATE PROCEDURE test_mark_hash.climb(low integer, high integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR token IN low..high LOOP
		PERFORM lockfence.present('hash:climb', token);
		COMMIT;
	END LOOP;
END
$$;
VACUUM lockfence.mark;
SELECT pg_relation_size('lockfence.mark') AS size \gset
CALL test_mark_hash.climb(1, 10000);
\c -
CALL test_mark_hash.climb(10001, 20000);
SELECT (pg_relation_size('lockfence.mark') - :size) / current_setting('block_size')::integer < 20 AS small;
SELECT lockfence.present('hash:climb', 19999);
SET client_min_messages = warning;
DROP SCHEMA test_mark_hash CASCADE;
