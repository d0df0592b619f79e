-- present(), presented(), is_current(): what a transaction has shown, and when it is gone.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_present;
SET search_path = test_present;
CREATE VIEW presented AS SELECT * FROM lockfence.presented() ORDER BY resource NULLS FIRST;
CREATE VIEW marks AS SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'present:%' ORDER BY resource;

-- The first mark of a resource has none before it, a higher one returns the one before, an equal one itself.
SELECT lockfence.present('present:a', 10);
SELECT lockfence.present('present:a', 12);
SELECT lockfence.present('present:a', 12);
-- A stale one is refused with all that its holder needs to know.
SELECT lockfence.present('present:a', 11);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM marks;

-- Autocommit: gone with the statement, like SET LOCAL.
SELECT lockfence.present(12);
SELECT * FROM presented;

-- inherited by the next client of a pooler: nothing outlives COMMIT or ROLLBACK
BEGIN;
SELECT lockfence.present(12);
SELECT lockfence.present('present:a', 12);
SELECT * FROM presented;
COMMIT;
SELECT * FROM presented;
BEGIN;
SELECT lockfence.present(12);
SELECT lockfence.present('present:a', 12);
ROLLBACK;
SELECT * FROM presented;

-- ... nor AND CHAIN.
BEGIN;
SELECT lockfence.present(12);
SELECT lockfence.present('present:a', 12);
COMMIT AND CHAIN;
SELECT * FROM presented;
SELECT lockfence.present(12);
ROLLBACK AND CHAIN;
SELECT * FROM presented;
COMMIT;

-- ... nor a transaction that an error ended.
BEGIN;
SELECT lockfence.present(12);
SELECT lockfence.present('present:a', 12);
SELECT 1/0;
COMMIT;
SELECT * FROM presented;

-- ... nor COMMIT and ROLLBACK inside a procedure.
CREATE PROCEDURE two_transactions() LANGUAGE plpgsql AS $$
BEGIN
	PERFORM lockfence.present(20);
	PERFORM lockfence.present('present:b', 20);
	COMMIT;
	RAISE INFO 'after COMMIT: %', (SELECT count(*) FROM lockfence.presented());
	PERFORM lockfence.present(21);
	PERFORM lockfence.present('present:b', 21);
	ROLLBACK;
	RAISE INFO 'after ROLLBACK: %', (SELECT count(*) FROM lockfence.presented());
END
$$;
CALL two_transactions();
SELECT * FROM marks;

-- A rolled-back first presentation lowers the mark again.
BEGIN;
SELECT lockfence.present('present:c', 30);
SELECT * FROM marks;
ROLLBACK;
SELECT * FROM marks;

-- Savepoints: what a subtransaction presented ends when it is rolled back.
BEGIN;
SELECT lockfence.present(40);
SAVEPOINT one;
SELECT lockfence.present('present:d', 40);
SAVEPOINT two;
SELECT lockfence.present(41);
SELECT lockfence.present('present:e', 41);
SELECT * FROM presented;
ROLLBACK TO two;
SELECT * FROM presented;
-- ... and stays when it is released, until the one around it is rolled back.
SAVEPOINT three;
SELECT lockfence.present(42);
SELECT lockfence.present('present:e', 42);
RELEASE three;
SELECT * FROM presented;
ROLLBACK TO one;
SELECT * FROM presented;
ROLLBACK TO one;
SELECT lockfence.present('present:d', 39);
SELECT * FROM presented;
COMMIT;
SELECT * FROM marks;

-- A higher token in a savepoint: its rollback brings back the lower one, as token and as mark.
BEGIN;
SELECT lockfence.present('present:d', 40);
SAVEPOINT one;
SELECT lockfence.present('present:d', 45);
ROLLBACK TO one;
SELECT * FROM presented;
SELECT lockfence.present('present:d', 41);
SELECT * FROM presented;
COMMIT;

-- A block with an exception handler is a subtransaction.
DO $$
BEGIN
	PERFORM lockfence.present(50);
	PERFORM lockfence.present('present:f', 50);
	BEGIN
		PERFORM lockfence.present(51);
		PERFORM lockfence.present('present:f', 51);
		PERFORM lockfence.present('present:g', 51);
		PERFORM 1/0;
	EXCEPTION WHEN division_by_zero THEN
		RAISE INFO 'presented: %', (SELECT array_agg(p ORDER BY p) FROM lockfence.presented() p);
	END;
END
$$;
SELECT * FROM marks;
-- A refusal in such a block leaves what was presented before it.
DO $$
BEGIN
	PERFORM lockfence.present('present:f', 52);
	BEGIN
		PERFORM lockfence.present('present:f', 49);
	EXCEPTION WHEN SQLSTATE 'LF001' THEN
		RAISE INFO '%: %', SQLERRM, (SELECT array_agg(p ORDER BY p) FROM lockfence.presented() p);
	END;
END
$$;
SELECT * FROM marks;

-- Many levels, each of which raises the mark, and the rollback of some.
DO $$
BEGIN
	FOR n IN 1..200 LOOP
		BEGIN
			PERFORM lockfence.present('present:h', 100 + n);
			IF n > 100 THEN
				RAISE EXCEPTION 'away';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
	RAISE INFO 'presented: %', (SELECT array_agg(p) FROM lockfence.presented() p);
END
$$;
SELECT * FROM marks;

-- Every resource of the transaction is listed, each once.
BEGIN;
SELECT count(lockfence.present('present:many-' || n, 7)) FROM generate_series(1, 100) n;
SELECT count(lockfence.present('present:many-' || n, 8)) FROM generate_series(1, 100) n;
SELECT count(*), count(DISTINCT resource), min(token), max(token) FROM lockfence.presented();
SELECT count(*) FROM presented a, presented b WHERE a.resource = b.resource;
ROLLBACK;

-- is_current(): lower, equal, higher, no mark. It presents nothing and moves nothing.
SELECT t, lockfence.is_current('present:a', t) FROM unnest('{11,12,13}'::bigint[]) t;
SELECT lockfence.is_current('present:none', 1);
SELECT * FROM presented;
SELECT * FROM marks WHERE resource IN ('present:a', 'present:none');
-- ... so it may be asked in a read-only transaction, where a new holder cannot present.
BEGIN READ ONLY;
SELECT lockfence.is_current('present:a', 13);
SELECT lockfence.present('present:a', 12);
SELECT lockfence.present('present:a', 13);
ROLLBACK;

-- What cannot be a resource's name.
SELECT lockfence.present(NULL, 1);
SELECT lockfence.present('', 1);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present(repeat('x', 1025), 1);
SELECT lockfence.present(repeat(U&'\20AC', 342), 1);
SELECT lockfence.is_current('', 1);
SELECT lockfence.is_current(NULL, 1);
-- The longest one is; case and blanks count; so does every character after the 63rd.
BEGIN;
SELECT lockfence.present(repeat('x', 1024), 1);
SELECT lockfence.present(repeat('x', 1023) || 'y', 2);
SELECT lockfence.present('Present:A', 1), lockfence.present('present:a ', 1);
SELECT count(*) FROM lockfence.presented();
ROLLBACK;

DROP SCHEMA test_present CASCADE;
