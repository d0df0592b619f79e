-- Many resources in one transaction: a handful of locks, by whichever means they are held.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_many;
SET search_path = test_many;
CREATE VIEW resource_locks AS
SELECT (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid = 19526) +
	(SELECT count(*) FROM lockfence.mark WHERE pg_backend_pid() = ANY (lockfence._fast_path_holders(resource))) AS locks;
CREATE TABLE item (id integer, note text);
SELECT lockfence.attach('item', 'many:{id}', 'token');

-- 100,000 marks made by one statement: the uncommitted marks hold the resources
BEGIN;
INSERT INTO item SELECT n, 'new', 10 FROM generate_series(1, 100000) n;
SELECT count(*), min(token), max(token) FROM lockfence.presented();
SELECT * FROM resource_locks;
SELECT count(*) < 50 AS few FROM pg_locks WHERE pid = pg_backend_pid();
COMMIT;
SELECT count(*), min(token), max(token) FROM lockfence.mark WHERE resource LIKE 'many:%';

-- The equal path holds by locks up to a set number, and by the marks' tuples past it.
SHOW lockfence.max_resource_locks;
BEGIN;
UPDATE item SET note = 'few', token = 10 WHERE id <= 10;
SELECT * FROM resource_locks;
UPDATE item SET note = 'many', token = 10 WHERE id <= 1000;
SELECT * FROM resource_locks;
SELECT count(*) FROM lockfence.presented();
SELECT count(*) FILTER (WHERE xmax::text <> '0') AS by_tuple FROM lockfence.mark WHERE resource LIKE 'many:%';
-- ... each once, however often it is written
UPDATE item SET note = 'again', token = 10 WHERE id <= 1000;
SELECT * FROM resource_locks;
COMMIT;
-- A rolled-back savepoint gives its share back.
BEGIN;
SAVEPOINT s;
UPDATE item SET note = 'many', token = 10 WHERE id <= 1000;
ROLLBACK TO s;
SELECT * FROM resource_locks;
UPDATE item SET note = 'few', token = 10 WHERE id BETWEEN 2001 AND 2010;
SELECT * FROM resource_locks;
COMMIT;
BEGIN;
SET LOCAL lockfence.max_resource_locks = 3;
UPDATE item SET note = 'few', token = 10 WHERE id <= 10;
SELECT * FROM resource_locks;
COMMIT;

-- By tuple lock alone: the decision is the same.
SET lockfence.max_resource_locks = 0;
BEGIN;
UPDATE item SET note = 'tuple', token = 10 WHERE id = 1;
SELECT * FROM resource_locks;
UPDATE item SET note = 'remembered' WHERE id = 1;
SELECT lockfence.present('many:1', 9);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- ... and a savepoint, in which the fast path is not used, keeps no lock beside it
BEGIN;
SAVEPOINT s;
UPDATE item SET note = 'tuple', token = 10 WHERE id = 1;
SELECT * FROM resource_locks;
ROLLBACK;
UPDATE item SET note = 'stale', token = 9 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET note = 'missing' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present('many:1', 10);
SAVEPOINT s;
SELECT lockfence.present('many:1', 11);
SELECT lockfence.present('many:1', 12);
ROLLBACK TO s;
SELECT lockfence.present('many:1', 11);
SELECT * FROM lockfence.presented();
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE item SET note = 'tuple', token = 11 WHERE id IN (1, 2);
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE item SET note = 'tuple', token = 10 WHERE id = 2;
UPDATE item SET note = 'tuple', token = 11 WHERE id = 1;
SELECT resource, token FROM lockfence.presented() ORDER BY resource;
COMMIT;
RESET lockfence.max_resource_locks;

-- An advance of many that a transaction holds.
BEGIN;
UPDATE item SET note = 'held', token = 10 WHERE id BETWEEN 101 AND 300;
SELECT count(lockfence.present('many:' || id, 11)) FROM generate_series(101, 300) id;
UPDATE item SET note = 'advanced', token = 11 WHERE id BETWEEN 101 AND 300;
SELECT count(*) FROM lockfence.presented() WHERE token = 11;
COMMIT;
SELECT count(*) FROM lockfence.mark WHERE resource LIKE 'many:%' AND token = 11;
-- ... and many savepoints, each with a resource of its own
DO $$
BEGIN
	FOR n IN 1..2000 LOOP
		BEGIN
			PERFORM lockfence.present('many:sub-' || n, 5);
			IF n % 2 = 0 THEN
				RAISE EXCEPTION 'away';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
	RAISE INFO 'presented: %', (SELECT count(*) FROM lockfence.presented());
END
$$;
SELECT count(*) FROM lockfence.mark WHERE resource LIKE 'many:sub-%';

DROP SCHEMA test_many CASCADE;
