-- What a rolled-back savepoint, an error or an earlier transaction leaves behind: nothing.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_transactions;
SET search_path = test_transactions;
CREATE TABLE item (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'transactions:{id}', 'token');
INSERT INTO item VALUES (1, 'new', 10), (2, 'new', 10);
-- The locks that this session holds on resources.
CREATE VIEW resource_locks AS
SELECT (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid = 19526) +
	(SELECT count(*) FROM lockfence.mark WHERE pg_backend_pid() = ANY (lockfence._fast_path_holders(resource))) AS held;

-- memo that survives ROLLBACK TO: "already checked" must not be remembered once the lock is gone
BEGIN;
SAVEPOINT s;
UPDATE item SET note = 'held', token = 10 WHERE id = 1;
SELECT * FROM resource_locks;
SELECT * FROM lockfence.presented();
ROLLBACK TO s;
SELECT * FROM resource_locks;
SELECT * FROM lockfence.presented();
-- ... so the write must present its token again,
UPDATE item SET note = 'inherited' WHERE id = 1;
ROLLBACK TO s;
-- ... and is checked and locked again.
UPDATE item SET note = 'again', token = 10 WHERE id = 1;
SELECT * FROM resource_locks;
COMMIT;
SELECT * FROM resource_locks;

-- ... the same after an advance, whose mark went with the savepoint
BEGIN;
SAVEPOINT s;
UPDATE item SET note = 'advanced', token = 20 WHERE id = 1;
ROLLBACK TO s;
UPDATE item SET note = 'lower', token = 11 WHERE id = 1;
SELECT * FROM lockfence.presented();
COMMIT;
SELECT token FROM lockfence.mark WHERE resource = 'transactions:1';

-- ... and after an advance over a token that the transaction holds: the hold comes back, and its lock was kept
BEGIN;
SELECT lockfence.present('transactions:1', 11);
SAVEPOINT s;
SELECT lockfence.present('transactions:1', 12);
ROLLBACK TO s;
UPDATE item SET note = 'held' WHERE id = 1;
SELECT * FROM resource_locks;
SELECT * FROM item WHERE id = 1;
COMMIT;

-- A released savepoint's hold is its parent's.
BEGIN;
SAVEPOINT s;
SELECT lockfence.present('transactions:1', 11);
RELEASE s;
UPDATE item SET note = 'released' WHERE id = 1;
SELECT * FROM resource_locks;
COMMIT;

-- A block with an exception handler: a refused write leaves no token behind, an accepted one does.
DO $$
BEGIN
	BEGIN
		UPDATE test_transactions.item SET note = 'both', token = 30 WHERE id = 1;
		UPDATE test_transactions.item SET note = 'both', token = 9 WHERE id = 2;
	EXCEPTION WHEN SQLSTATE 'LF001' THEN
		RAISE INFO 'presented: %', (SELECT count(*) FROM lockfence.presented());
	END;
	UPDATE test_transactions.item SET note = 'after', token = 11 WHERE id = 1;
	RAISE INFO 'presented: %', (SELECT array_agg(p) FROM lockfence.presented() p);
END
$$;
SELECT token FROM lockfence.mark WHERE resource = 'transactions:1';

-- token in a session setting: none is read, none is left
DO $$
BEGIN
	PERFORM set_config('lockfence.token', '99', false);
EXCEPTION WHEN invalid_name THEN
	NULL;	-- from PostgreSQL 15 on there can be no such setting
END
$$;
UPDATE item SET note = 'setting' WHERE id = 1;
BEGIN;
SELECT lockfence.present('transactions:1', 98);
SELECT count(*) FROM pg_settings WHERE name LIKE 'lockfence.%' AND setting = '98';
ROLLBACK;
-- ... and RESET ALL or a change of role takes nothing away that the transaction has presented.
CREATE ROLE regress_transactions;
GRANT USAGE ON SCHEMA test_transactions TO regress_transactions;
GRANT SELECT, UPDATE ON item TO regress_transactions;
BEGIN;
SELECT lockfence.present('transactions:1', 11);
RESET ALL;
SET ROLE regress_transactions;
UPDATE test_transactions.item SET note = 'role' WHERE id = 1;
RESET ROLE;
COMMIT;
SET search_path = test_transactions;
SET client_min_messages = warning;

-- A rolled-back first write lowers the mark again: so the first act of a holder is present() and COMMIT.
BEGIN;
UPDATE item SET note = 'first', token = 40 WHERE id = 1;
ROLLBACK;
UPDATE item SET note = 'older holder', token = 11 WHERE id = 1;
SELECT lockfence.present('transactions:1', 40);
BEGIN;
UPDATE item SET note = 'first', token = 40 WHERE id = 1;
ROLLBACK;
UPDATE item SET note = 'older holder', token = 11 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE

-- A mark that is advanced, removed and made again within one transaction.
BEGIN;
SELECT lockfence.present('transactions:3', 50);
SAVEPOINT s;
SELECT lockfence.present('transactions:3', 51);
SELECT lockfence.reset_mark('transactions:3', 45, 'lowered by hand');
SELECT lockfence.present('transactions:3', 44);
ROLLBACK TO s;
SELECT lockfence.present('transactions:3', 49);
ROLLBACK TO s;
SELECT lockfence.present('transactions:3', 50);
COMMIT;
SELECT token FROM lockfence.mark WHERE resource = 'transactions:3';

-- Several advances by one command: each reads what the one before wrote.
SELECT n, lockfence.present('transactions:4', n) FROM generate_series(1, 5) n;
SELECT lockfence.present('transactions:4', 7), lockfence.present('transactions:4', 6);
SELECT token FROM lockfence.mark WHERE resource = 'transactions:4';

-- A cursor that stays open WITH HOLD, and a function's own EXCEPTION block inside a writing statement.
CREATE FUNCTION try_present(resource text, token bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM lockfence.present(resource, token);
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
BEGIN;
UPDATE item SET note = try_present('transactions:5', 10 - id), token = 40 WHERE id = 1;
UPDATE item SET note = try_present('transactions:5', 5), token = 40 WHERE id = 2;
SELECT * FROM item ORDER BY id;
SELECT * FROM lockfence.presented() ORDER BY resource;
DECLARE held CURSOR WITH HOLD FOR SELECT * FROM lockfence.presented() ORDER BY resource;
COMMIT;
FETCH ALL FROM held;
SELECT * FROM lockfence.presented();
CLOSE held;

DROP SCHEMA test_transactions CASCADE;
DROP ROLE regress_transactions;
