-- A validator is asked about a token that would advance the mark, and about no other.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_validator;
SET search_path = test_validator;
-- It keeps count in a sequence, which no rollback takes back.
CREATE SEQUENCE asked;
CREATE FUNCTION asked() RETURNS bigint LANGUAGE sql AS $$SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM test_validator.asked$$;
CREATE FUNCTION judge(resource text, token lockfence.fence_token) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM nextval('test_validator.asked');
	RAISE INFO 'asked about % of %', token, resource;
	CASE token
		WHEN 20 THEN RETURN false;
		WHEN 21 THEN RETURN NULL;
		WHEN 22 THEN RAISE EXCEPTION 'lock service does not answer';
		ELSE RETURN true;
	END CASE;
END
$$;
CREATE TABLE item (id integer PRIMARY KEY, grp text NOT NULL, note text);
SELECT lockfence.attach('item', 'validator:{grp}', 'token', validator => 'judge(text, lockfence.fence_token)');
-- Once for a resource and transaction, however many rows.
INSERT INTO item SELECT n, 'a', 'new', 10 FROM generate_series(1, 100) n;
-- Not for the same holder.
UPDATE item SET note = 'equal', token = 10;
BEGIN;
SELECT lockfence.present(10);
UPDATE item SET note = 'equal';
COMMIT;
-- Not for a stale one: the mark has answered.
UPDATE item SET note = 'stale', token = 9;
\echo :LAST_ERROR_SQLSTATE
-- Not for a write without one.
UPDATE item SET note = 'missing';
-- Not by present(), which knows of no fence.
SELECT lockfence.present('validator:a', 11);
UPDATE item SET note = 'presented', token = 11 WHERE id = 1;
SELECT asked();
-- For every advance, also after a savepoint is rolled back.
BEGIN;
SAVEPOINT s;
UPDATE item SET note = 'next', token = 12 WHERE id = 1;
UPDATE item SET note = 'next', token = 12 WHERE id = 2;
ROLLBACK TO s;
UPDATE item SET note = 'next', token = 12 WHERE id = 1;
COMMIT;
-- For each resource of a move.
UPDATE item SET grp = 'b', token = 13 WHERE id = 1;
SELECT asked();

-- A no, a null and an error each refuse.
UPDATE item SET note = 'no', token = 20 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET note = 'null', token = 21 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET note = 'error', token = 22 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'validator:%' ORDER BY resource;
-- ... in guarded writes as well
SELECT lockfence.guarded_update('item', '{"grp": "a", "id": 2}', '{"note": "guarded"}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('item', '{"grp": "a", "id": 2}', '{"note": "guarded"}', 23);
SELECT lockfence.guarded_delete('item', '{"id": 2}', 23);
SELECT asked();

-- Constant fences; and a validator that takes a bigint, or writes itself.
CREATE TABLE answers (resource text, token bigint);
CREATE FUNCTION note_down(text, bigint) RETURNS boolean LANGUAGE sql AS $$
	INSERT INTO test_validator.answers VALUES ($1, $2);
	SELECT true;
$$;
CREATE TABLE ledger (id integer);
SELECT lockfence.attach('ledger', 'validator:ledger', validator => 'note_down(text, bigint)');
BEGIN;
SELECT lockfence.present(9007199254740993);
INSERT INTO ledger VALUES (1);
INSERT INTO ledger VALUES (2);
COMMIT;
SELECT * FROM answers;
-- A validator that presents a token itself, or advances the very resource, cannot bend the decision.
CREATE FUNCTION bend(resource text, token bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM lockfence.present(resource, token + 1);
	RETURN true;
END
$$;
SELECT lockfence.detach('ledger');
SELECT lockfence.attach('ledger', 'validator:bent', 'token', validator => 'bend(text, bigint)');
INSERT INTO ledger VALUES (3, 10);
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM ledger;

-- A validator in a schema that is closed to the role that writes.
CREATE SCHEMA test_validator_closed;
CREATE FUNCTION test_validator_closed.agree(text, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT lockfence.detach('ledger');
SELECT lockfence.attach('ledger', 'validator:closed', 'token', validator => 'test_validator_closed.agree(text, bigint)');
CREATE ROLE regress_validator_writer;
GRANT USAGE ON SCHEMA test_validator TO regress_validator_writer;
GRANT INSERT ON ledger TO regress_validator_writer;
\c -
SET search_path = test_validator;
SET ROLE regress_validator_writer;
INSERT INTO ledger VALUES (4, 20);
RESET ROLE;
SELECT count(*) FROM ledger;

-- A validator whose token is of a domain of its own: named by its types, and asked.
CREATE DOMAIN ticket AS bigint;
CREATE FUNCTION know(resource text, token ticket) RETURNS boolean LANGUAGE sql AS 'SELECT token > 100';
SELECT lockfence.detach('ledger');
SELECT lockfence.attach('ledger', 'validator:own', 'token', validator => 'know(text, ticket)');
SELECT validator FROM lockfence.fences WHERE target = 'ledger'::regclass;
SELECT code FROM lockfence.verify('ledger') WHERE code LIKE 'validator%';
INSERT INTO ledger VALUES (5, 100);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO ledger VALUES (5, 101);
SELECT count(*) FROM ledger;

SET client_min_messages = warning;
DROP SCHEMA test_validator, test_validator_closed CASCADE;
DROP ROLE regress_validator_writer;
