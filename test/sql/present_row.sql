-- present(target, key, token): a token for one row of a row fence.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_present_row;
SET search_path = test_present_row;
SET lockfence.unchecked_token = error;
\pset tuples_only on
CREATE FUNCTION try(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE 'SELECT ' || call INTO result;
	RETURN 'returned: ' || coalesce(result, 'null');
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;
CREATE TABLE job (id integer PRIMARY KEY, label text NOT NULL UNIQUE, state text);
SELECT lockfence.attach('job');
INSERT INTO job VALUES (1, 'first', 'new'), (2, 'second', 'new');
-- the first token, the same one, a higher one, a stale one
SELECT lockfence.present('job', '{"id": 1}', 10);
SELECT ctid AS place FROM job WHERE id = 1 \gset
SELECT lockfence.present('job', '{"id": 1}', 10);
-- ... an equal token writes nothing
SELECT ctid = :'place' FROM job WHERE id = 1;
SELECT lockfence.present('job', '{"label": "first"}', 11);
SELECT try($$lockfence.present('job', '{"id": 1}', 10)$$);
SELECT * FROM job ORDER BY id;
SELECT lockfence.is_current('job', '{"id": 1}', 10), lockfence.is_current('job', '{"id": 1}', 11);

-- It counts for later writes to that row, and to no other.
BEGIN;
SELECT lockfence.present('job', '{"id": 1}', 11);
UPDATE job SET state = 'mine' WHERE id = 1;
UPDATE job SET state = 'again' WHERE label = 'first';
SELECT * FROM lockfence.presented();
SAVEPOINT s;
UPDATE job SET state = 'other' WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
-- ... the ambient token must agree, as for a name
SELECT lockfence.present(12);
UPDATE job SET state = 'ambient' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
-- ... a savepoint takes back what was presented after it
SELECT lockfence.present('job', '{"id": 2}', 20);
SELECT lockfence.present('job', '{"id": 1}', 30);
UPDATE job SET state = 'both';
ROLLBACK TO s;
SELECT * FROM lockfence.presented();
UPDATE job SET state = 'back' WHERE id = 1;
SAVEPOINT r;
SELECT lockfence.present('job', '{"id": 2}', 20);
RELEASE r;
UPDATE job SET state = 'released' WHERE id = 2;
DELETE FROM job WHERE id = 2;
COMMIT;
SELECT * FROM job ORDER BY id;
-- ... and ends with the transaction
UPDATE job SET state = 'late' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
-- it is a comparison with a mark, for the ambient token too
BEGIN;
SELECT lockfence.present(11);
SELECT lockfence.present('job', '{"id": 1}', 11);
CREATE TABLE unfenced ();
COMMIT;

-- Not one row; no such row; not a row fence; not a token; null.
SELECT try($$lockfence.present('job', '{"state": "back"}', 11)$$);
SELECT try($$lockfence.present('job', '{"id": 9}', 11)$$);
SELECT try($$lockfence.present('job', '{"id": 1, "state": "gone"}', 11)$$);
CREATE TABLE named (id integer PRIMARY KEY);
SELECT lockfence.attach('named', 'named:{id}');
SELECT try($$lockfence.present('named', '{"id": 1}', 11)$$);
SELECT try($$lockfence.present('job', '{"id": 1}', 0)$$);
SELECT try($$lockfence.present(NULL, '{"id": 1}', 11)$$);
SELECT try($$lockfence.present('job', NULL, 11)$$);
SELECT try($$lockfence.present(0, '{"id": 1}', 11)$$);
BEGIN;
SELECT lockfence.set_epoch(1, 'test');
SELECT try($$lockfence.present('job', '{"id": 1}', 12)$$);
ROLLBACK;
-- no write
BEGIN READ ONLY;
SELECT lockfence.present('job', '{"id": 1}', 11);
ROLLBACK;

-- Settings of the fence.
CREATE TABLE once (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('once', repeat => 'reject', accept => 'presented');
INSERT INTO once VALUES (1, 'new');
BEGIN;
SELECT lockfence.present('once', '{"id": 1}', 5);
UPDATE once SET state = 'one' WHERE id = 1;
UPDATE once SET state = 'two' WHERE id = 1;
COMMIT;
SELECT try($$lockfence.present('once', '{"id": 1}', 5)$$);
CREATE TABLE observed (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('observed', enforcement => 'advisory');
INSERT INTO observed VALUES (1, 'new', 10);
SELECT lockfence.present('observed', '{"id": 1}', 9);
SELECT fence FROM observed;
-- A partition numbers its columns in its own way; a trigger drops the write.
CREATE TABLE part (id integer, state text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE part_1 (gone integer, state text, id integer NOT NULL);
ALTER TABLE part_1 DROP COLUMN gone;
ALTER TABLE part ATTACH PARTITION part_1 FOR VALUES FROM (1) TO (10);
SELECT lockfence.attach('part');
INSERT INTO part VALUES (1, 'new');
BEGIN;
SELECT lockfence.present('part', '{"id": 1}', 5);
UPDATE part SET state = 'mine';
UPDATE part_1 SET state = 'its own';
COMMIT;
SELECT * FROM part;
CREATE FUNCTION drop_write() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER drop_write BEFORE UPDATE ON part FOR EACH ROW EXECUTE FUNCTION drop_write();
SELECT try($$lockfence.present('part', '{"id": 1}', 6)$$);

-- The privileges of the UPDATE that takes the row over, and SELECT on the token.
CREATE ROLE regress_lf_holder;
GRANT USAGE ON SCHEMA test_present_row, lockfence TO regress_lf_holder;
SELECT has_function_privilege('regress_lf_holder', 'lockfence.present(regclass, jsonb, lockfence.fence_token)', 'EXECUTE');
GRANT EXECUTE ON FUNCTION lockfence.present(regclass, jsonb, lockfence.fence_token) TO regress_lf_holder;
CREATE TABLE doc (id integer PRIMARY KEY, tenant text);
SELECT lockfence.attach('doc');
INSERT INTO doc VALUES (1, 'mine', 10), (2, 'other', 10), (3, 'shared', 10);
SET ROLE regress_lf_holder;
SELECT try($$lockfence.present('doc', '{"id": 1}', 11)$$);
RESET ROLE;
GRANT UPDATE (fence) ON doc TO regress_lf_holder;
SET ROLE regress_lf_holder;
SELECT try($$lockfence.present('doc', '{"id": 1}', 11)$$);
RESET ROLE;
GRANT SELECT (id) ON doc TO regress_lf_holder;
SET ROLE regress_lf_holder;
SELECT try($$lockfence.present('doc', '{"id": 1}', 11)$$);
RESET ROLE;
GRANT SELECT (fence) ON doc TO regress_lf_holder;
SET ROLE regress_lf_holder;
SELECT try($$lockfence.present('doc', '{"id": 1}', 11)$$);
RESET ROLE;
-- ... and row security: a row that is hidden from the caller is none
CREATE POLICY seen ON doc FOR SELECT USING (tenant IN ('mine', 'shared'));
CREATE POLICY changed ON doc FOR UPDATE USING (tenant = 'mine');
ALTER TABLE doc ENABLE ROW LEVEL SECURITY;
GRANT SELECT (tenant) ON doc TO regress_lf_holder;
SET ROLE regress_lf_holder;
SELECT id, try(format($$lockfence.present('doc', '{"id": %s}', 12)$$, id)) FROM generate_series(1, 3) id;
SELECT id, try(format($$lockfence.present('doc', '{"id": %s}', 9)$$, id)) FROM generate_series(1, 3) id;
RESET ROLE;
SELECT id, fence FROM doc ORDER BY id;

-- The token follows the row to another key and to another partition, whose columns have other numbers; and back.
CREATE TABLE moved (id integer, region text, note text, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE moved_a PARTITION OF moved FOR VALUES IN ('a');
CREATE TABLE moved_b (note text, dropped integer, region text NOT NULL, id integer NOT NULL);
ALTER TABLE moved_b DROP dropped;
ALTER TABLE moved ATTACH PARTITION moved_b FOR VALUES IN ('b');
SELECT lockfence.attach('moved');
INSERT INTO moved VALUES (1, 'a', 'new'), (2, 'b', 'new');
BEGIN;
SELECT lockfence.present('moved', '{"id": 1, "region": "a"}', 10);
UPDATE moved SET region = 'b' WHERE id = 1;
UPDATE moved SET note = 'moved' WHERE id = 1;
UPDATE moved SET id = 3 WHERE id = 1;
UPDATE moved SET note = 'renamed' WHERE id = 3;
SAVEPOINT s;
UPDATE moved SET region = 'a' WHERE id = 3;
UPDATE moved SET note = 'back' WHERE id = 3;
ROLLBACK TO s;
UPDATE moved SET note = 'not back' WHERE id = 3;
SELECT resource, token FROM lockfence.presented();
-- ... and to no other row
UPDATE moved SET note = 'other' WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
COMMIT;
SELECT tableoid::regclass, id, region, fence FROM moved ORDER BY id;

-- DDL of the same transaction changes the key: the row is another one then.
CREATE TABLE retyped (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('retyped');
INSERT INTO retyped VALUES (1, 'new');
BEGIN;
SELECT lockfence.present('retyped', '{"id": 1}', 10);
ALTER TABLE retyped ALTER id TYPE text;
UPDATE retyped SET note = 'text';
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT lockfence.present('retyped', '{"id": 1}', 10);
ALTER TABLE retyped DROP id;
UPDATE retyped SET note = 'no key';
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
DROP SCHEMA test_present_row CASCADE;
DROP OWNED BY regress_lf_holder;
DROP ROLE regress_lf_holder;
