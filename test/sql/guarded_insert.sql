-- guarded_insert(): a row, under a token.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_insert;
SET search_path = test_insert;
\pset tuples_only on
CREATE FUNCTION try(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result bigint;
BEGIN
	EXECUTE 'SELECT ' || call INTO result;
	RETURN 'rows: ' || coalesce(result::text, 'null');
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || CASE WHEN SQLSTATE LIKE 'LF%' THEN ' ' || SQLERRM ELSE '' END;
END
$$;
CREATE TABLE item (
	id integer GENERATED ALWAYS AS IDENTITY, batch integer DEFAULT 7, amount numeric(6,2), doc jsonb, tags text[],
	twice numeric GENERATED ALWAYS AS (amount * 2) STORED, at date DEFAULT '2026-01-02');
SELECT lockfence.attach('item', 'insert:{batch}', 'token');
-- the columns that are given; the others by their defaults
SELECT lockfence.guarded_insert('item', '{"batch": 1, "amount": 1.005, "doc": {"a": [1, "b"]}, "tags": ["x", null, "y z"]}', 10);
SELECT lockfence.guarded_insert('item', '{"amount": 2, "at": null}', 20);
SELECT * FROM item ORDER BY id;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'insert:%' ORDER BY 1;
-- stale: the resource named by the row, and by a default
SELECT try($$lockfence.guarded_insert('item', '{"batch": 1}', 9)$$);
SELECT try($$lockfence.guarded_insert('item', '{"amount": 2}', 19)$$);
-- ... before another error of the row
ALTER TABLE item ADD CHECK (amount < 100);
SELECT try($$lockfence.guarded_insert('item', '{"batch": 1, "amount": 100}', 9)$$);
SELECT try($$lockfence.guarded_insert('item', '{"batch": 1, "amount": 100}', 10)$$);
-- what a client cannot write
SELECT try($$lockfence.guarded_insert('item', '{"id": 1}', 20)$$);
SELECT try($$lockfence.guarded_insert('item', '{"twice": 1}', 20)$$) IN ('428C9', '42601') AS by_version;
SELECT try($$lockfence.guarded_insert('item', '{"none": 1}', 20)$$);
SELECT try($$lockfence.guarded_insert('item', '{}', 20)$$);
SELECT try($$lockfence.guarded_insert('item', '[1]', 20)$$);
SELECT try($$lockfence.guarded_insert('item', NULL, 20)$$);
SELECT try($$lockfence.guarded_insert('item', '{"batch": null}', 20)$$);
SELECT try($$lockfence.guarded_insert('item', '{"batch": 1}', 0)$$);
SELECT try($$lockfence.guarded_insert('item', '{"batch": 1, "token": 11}', 12)$$);
-- a trigger that gives the row to another resource: that one decides as well; one that drops it
CREATE FUNCTION redirect() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.amount = 0 THEN
		RETURN NULL;
	END IF;
	NEW.batch := 7;
	RETURN NEW;
END
$$;
CREATE TRIGGER redirect BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION redirect();
SELECT try($$lockfence.guarded_insert('item', '{"batch": 1, "amount": 3}', 19)$$);
SELECT try($$lockfence.guarded_insert('item', '{"batch": 1, "amount": 0}', 19)$$);
-- a constant fence; a row fence, whose new row has no holder
CREATE TABLE whole (id integer);
SELECT lockfence.attach('whole', 'insert-whole');
SELECT lockfence.guarded_insert('whole', '{"id": 1}', 10);
SELECT try($$lockfence.guarded_insert('whole', '{"id": 2}', 9)$$);
CREATE TABLE job (id integer PRIMARY KEY, state text DEFAULT 'new');
SELECT lockfence.attach('job');
SELECT lockfence.guarded_insert('job', '{"id": 1}', 10);
SELECT try($$lockfence.guarded_insert('job', '{"id": 1}', 9)$$);
SELECT * FROM job;
SELECT try($$lockfence.guarded_update('job', '{"id": 1}', '{"state": "x"}', 9)$$);
-- partitions, and a table that is not fenced
CREATE TABLE part (id integer, note text) PARTITION BY LIST (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
SELECT lockfence.attach('part', 'insert:part:{id}', 'token');
SELECT lockfence.guarded_insert('part', '{"id": 1}', 10);
SELECT try($$lockfence.guarded_insert('part', '{"id": 1}', 9)$$);
SELECT try($$lockfence.guarded_insert('part', '{"id": 2}', 9)$$);
CREATE TABLE plain (id integer);
SELECT try($$lockfence.guarded_insert('plain', '{"id": 1}', 9)$$);
-- the token is the row's, not what its triggers write elsewhere
CREATE FUNCTION note_whole() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO test_insert.whole VALUES (3);
	RETURN NULL;
END
$$;
CREATE TRIGGER note_whole AFTER INSERT ON job FOR EACH ROW EXECUTE FUNCTION note_whole();
SELECT try($$lockfence.guarded_insert('job', '{"id": 2}', 900)$$);
-- privileges and row security are the caller's
CREATE ROLE regress_lf_inserter;
GRANT USAGE ON SCHEMA test_insert, lockfence TO regress_lf_inserter;
SELECT has_function_privilege('regress_lf_inserter', 'lockfence.guarded_insert(regclass, jsonb, lockfence.fence_token)', 'EXECUTE');
GRANT EXECUTE ON FUNCTION lockfence.guarded_insert(regclass, jsonb, lockfence.fence_token) TO regress_lf_inserter;
CREATE TABLE doc (id integer, tenant text, secret text DEFAULT 'kept');
SELECT lockfence.attach('doc', 'insert:doc:{id}');
SET ROLE regress_lf_inserter;
SELECT try($$lockfence.guarded_insert('doc', '{"id": 1}', 10)$$);
RESET ROLE;
GRANT INSERT (id, tenant) ON doc TO regress_lf_inserter;
SET ROLE regress_lf_inserter;
SELECT try($$lockfence.guarded_insert('doc', '{"id": 1, "secret": "x"}', 10)$$);
SELECT try($$lockfence.guarded_insert('doc', '{"id": 1, "tenant": "mine"}', 11)$$);
RESET ROLE;
CREATE POLICY mine ON doc FOR INSERT WITH CHECK (tenant = 'mine');
ALTER TABLE doc ENABLE ROW LEVEL SECURITY;
SET ROLE regress_lf_inserter;
SELECT try($$lockfence.guarded_insert('doc', '{"id": 1, "tenant": "mine"}', 11)$$);
SELECT try($$lockfence.guarded_insert('doc', '{"id": 1, "tenant": "other"}', 11)$$);
RESET ROLE;
-- a caller without the privilege has raised no mark
SELECT token FROM lockfence.mark WHERE resource = 'insert:doc:1';
DROP SCHEMA test_insert CASCADE;
DROP OWNED BY regress_lf_inserter;
DROP ROLE regress_lf_inserter;
