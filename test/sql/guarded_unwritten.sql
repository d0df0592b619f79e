-- Guarded functions whose statement finds no row: the row that has the unique key decides on the token.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_unwritten;
SET search_path = test_unwritten;
\pset tuples_only on
CREATE FUNCTION try(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result bigint;
BEGIN
	EXECUTE 'SELECT ' || call INTO result;
	RETURN 'rows: ' || result;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;
CREATE TABLE job (id integer PRIMARY KEY, queue text NOT NULL, no integer NOT NULL, label text UNIQUE, state text, UNIQUE (queue, no));
SELECT lockfence.attach('job');
INSERT INTO job VALUES (1, 'a', 1, 'first', 'done', 10), (2, 'a', 2, 'second', 'new', 30);
-- stale, in another state than expected
SELECT try($$lockfence.guarded_update('job', '{"id": 1, "state": "active"}', '{"state": "x"}', 9)$$);
SELECT try($$lockfence.guarded_delete('job', '{"id": 1, "state": "active"}', 9)$$);
-- equal: no row in that state
SELECT try($$lockfence.guarded_update('job', '{"id": 1, "state": "active"}', '{"state": "x"}', 10)$$);
SELECT try($$lockfence.guarded_delete('job', '{"id": 1, "state": null}', 10)$$);
-- higher: the mark of a row that is not written stays
SELECT try($$lockfence.guarded_update('job', '{"id": 1, "state": "active"}', '{"state": "x"}', 11)$$);
SELECT fence FROM job WHERE id = 1;
-- in the expected state, the guard decides
SELECT try($$lockfence.guarded_update('job', '{"id": 1, "state": "done"}', '{"state": "done"}', 9)$$);
SELECT try($$lockfence.guarded_update('job', '{"id": 1, "state": "done"}', '{"state": "done"}', 11)$$);
-- no such row
SELECT try($$lockfence.guarded_update('job', '{"id": 9, "state": "active"}', '{"state": "x"}', 1)$$);
-- another unique key; one whose columns may be null names no row; nor does a part of one
SELECT try($$lockfence.guarded_update('job', '{"queue": "a", "no": 1, "state": "active"}', '{"state": "x"}', 9)$$);
SELECT try($$lockfence.guarded_update('job', '{"label": "first", "state": "active"}', '{"state": "x"}', 9)$$);
SELECT try($$lockfence.guarded_update('job', '{"queue": "a", "state": "active"}', '{"state": "x"}', 9)$$);
-- of two unique keys, the primary key names the row
SELECT try($$lockfence.guarded_update('job', '{"queue": "a", "no": 2, "id": 1}', '{"state": "x"}', 20)$$);
SELECT try($$lockfence.guarded_update('job', '{"queue": "a", "no": 1, "id": 2}', '{"state": "x"}', 20)$$);
-- the epoch is asked, too; two tokens that differ
BEGIN;
SELECT lockfence.set_epoch(1, 'test');
SELECT try($$lockfence.guarded_update('job', '{"id": 1, "state": "active"}', '{"state": "x"}', 100)$$);
ROLLBACK;
BEGIN;
SELECT lockfence.present(12);
SELECT try($$lockfence.guarded_update('job', '{"id": 1, "state": "active"}', '{"state": "x"}', 13)$$);
ROLLBACK;
-- a trigger that drops the write
CREATE FUNCTION drop_write() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER drop_write BEFORE UPDATE ON job FOR EACH ROW EXECUTE FUNCTION drop_write();
SELECT try($$lockfence.guarded_update('job', '{"id": 1}', '{"state": "x"}', 1)$$);
SELECT try($$lockfence.guarded_update('job', '{"id": 1}', '{"state": "x"}', 11)$$);
DROP TRIGGER drop_write ON job;

-- A fence that refuses a token it has seen in another transaction; an advisory one.
CREATE TABLE once (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('once', repeat => 'reject');
INSERT INTO once VALUES (1, 'new', 10);
SELECT try($$lockfence.guarded_update('once', '{"id": 1, "state": "active"}', '{"state": "x"}', 10)$$);
BEGIN;
SELECT lockfence.guarded_update('once', '{"id": 1}', '{"state": "mine"}', 11);
SELECT try($$lockfence.guarded_update('once', '{"id": 1, "state": "active"}', '{"state": "x"}', 11)$$);
COMMIT;
CREATE TABLE observed (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('observed', enforcement => 'advisory');
INSERT INTO observed VALUES (1, 'new', 10);
SELECT try($$lockfence.guarded_update('observed', '{"id": 1, "state": "active"}', '{"state": "x"}', 9)$$);

-- A template whose columns are not in the key.
CREATE TABLE line (id integer PRIMARY KEY, batch integer, state text);
SELECT lockfence.attach('line', 'unwritten:{batch}');
SELECT lockfence.present('unwritten:7', 10);
BEGIN;
SELECT lockfence.present(10);
INSERT INTO line VALUES (1, 7, 'done');
COMMIT;
SELECT try($$lockfence.guarded_update('line', '{"id": 1, "state": "active"}', '{"state": "x"}', 9)$$);
SELECT try($$lockfence.guarded_update('line', '{"id": 1, "state": "active"}', '{"state": "x"}', 10)$$);
-- ... and a higher token advances the mark, as where the key names the resource
SELECT try($$lockfence.guarded_delete('line', '{"id": 1, "state": "active"}', 11)$$);
SELECT token FROM lockfence.mark WHERE resource = 'unwritten:7';

-- Partitions, and children that inherit, in which a key is not unique.
CREATE TABLE part (id integer PRIMARY KEY, state text) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (1) TO (10);
CREATE TABLE part_2 PARTITION OF part DEFAULT;
SELECT lockfence.attach('part');
INSERT INTO part VALUES (1, 'done', 10), (20, 'done', 20);
SELECT try($$lockfence.guarded_update('part', '{"id": 1, "state": "active"}', '{"state": "x"}', 9)$$);
SELECT try($$lockfence.guarded_update('part', '{"id": 20, "state": "active"}', '{"state": "x"}', 19)$$);
SELECT try($$lockfence.guarded_update('part_2', '{"id": 20, "state": "active"}', '{"state": "x"}', 19)$$);
SELECT try($$lockfence.guarded_update('part_2', '{"id": 1, "state": "active"}', '{"state": "x"}', 1)$$);
CREATE TABLE parent (id integer PRIMARY KEY, state text);
CREATE TABLE child () INHERITS (parent);
SELECT lockfence.attach('parent');
INSERT INTO parent VALUES (1, 'done', 10);
INSERT INTO child VALUES (1, 'done', 20);
SELECT try($$lockfence.guarded_update('parent', '{"id": 1, "state": "active"}', '{"state": "x"}', 15)$$);
SELECT try($$lockfence.guarded_update('parent', '{"id": 1, "state": "active"}', '{"state": "x"}', 20)$$);

-- A caller that may not see the row learns nothing.
CREATE ROLE regress_lf_tenant;
GRANT USAGE ON SCHEMA test_unwritten, lockfence TO regress_lf_tenant;
GRANT EXECUTE ON FUNCTION lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token),
	lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token) TO regress_lf_tenant;
CREATE TABLE doc (id integer PRIMARY KEY, tenant text, state text);
SELECT lockfence.attach('doc');
INSERT INTO doc VALUES (1, 'mine', 'done', 10), (2, 'other', 'done', 10), (3, 'shared', 'done', 10);
GRANT SELECT (id, state), UPDATE (state), DELETE ON doc TO regress_lf_tenant;
CREATE POLICY seen ON doc FOR SELECT USING (tenant IN ('mine', 'shared'));
CREATE POLICY changed ON doc FOR UPDATE USING (tenant = 'mine');
CREATE POLICY deleted ON doc FOR DELETE USING (tenant = 'mine');
SET ROLE regress_lf_tenant;
-- by columns alone, without row security
SELECT try($$lockfence.guarded_update('doc', '{"id": 2, "state": "active"}', '{"state": "x"}', 9)$$);
SELECT try($$lockfence.guarded_delete('doc', '{"id": 2, "state": "active"}', 9)$$);
RESET ROLE;
ALTER TABLE doc ENABLE ROW LEVEL SECURITY;
SET ROLE regress_lf_tenant;
SELECT id, try(format($$lockfence.guarded_update('doc', '{"id": %s, "state": "active"}', '{"state": "x"}', 9)$$, id)) FROM generate_series(1, 3) id;
-- ... a DELETE takes no lock that asks the policies of a DELETE, so it takes SELECT on the token
SELECT id, try(format($$lockfence.guarded_delete('doc', '{"id": %s, "state": "active"}', 9)$$, id)) FROM generate_series(1, 3) id;
RESET ROLE;
GRANT SELECT (fence) ON doc TO regress_lf_tenant;
SET ROLE regress_lf_tenant;
SELECT id, try(format($$lockfence.guarded_delete('doc', '{"id": %s, "state": "active"}', 9)$$, id)) FROM generate_series(1, 3) id;
RESET ROLE;
-- ... forced on the owner, from whom a policy hides the row: then nothing decides
ALTER TABLE doc OWNER TO regress_lf_tenant;
ALTER TABLE doc FORCE ROW LEVEL SECURITY;
SELECT id, try(format($$lockfence.guarded_update('doc', '{"id": %s, "state": "active"}', '{"state": "x"}', 9)$$, id)) FROM generate_series(1, 3) id;
DROP SCHEMA test_unwritten CASCADE;
DROP OWNED BY regress_lf_tenant;
DROP ROLE regress_lf_tenant;
