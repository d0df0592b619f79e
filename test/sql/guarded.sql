-- guarded_update() and guarded_delete(): token and write in one call.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_guarded;
SET search_path = test_guarded;
CREATE TABLE batch (region text, no integer, state text, amount numeric, PRIMARY KEY (region, no));
SELECT lockfence.attach('batch', 'guarded:{region}', 'token');
INSERT INTO batch VALUES ('eu', 1, 'new', 1, 10), ('eu', 2, 'new', 2, 10), ('us', 1, 'new', 3, 10);

-- Any key columns, any changed columns; the number of rows is returned.
SELECT lockfence.guarded_update('batch', '{"region": "eu", "no": 1}', '{"state": "done", "amount": 1.5}', 10);
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"state": "all"}', 11);
SELECT lockfence.guarded_update('batch', '{"no": 1}', '{"state": "first"}', 11);
SELECT lockfence.guarded_update('batch', '{"region": "eu", "no": 99}', '{"state": "none"}', 11);
SELECT * FROM batch ORDER BY region, no;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'guarded:%' ORDER BY resource;
SELECT lockfence.guarded_delete('batch', '{"region": "us", "no": 1}', 11);
SELECT lockfence.guarded_delete('batch', '{"region": "us", "no": 1}', 11);

-- a waiter whose row is gone gets 0 rows and no error: the mark is checked even where no row matches
SELECT lockfence.guarded_update('batch', '{"region": "eu", "no": 99}', '{"state": "none"}', 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_delete('batch', '{"region": "eu", "no": 99}', 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_delete('batch', '{"region": "eu"}', 1);
-- ... where the resource follows from the key; else the row tells it
SELECT lockfence.guarded_update('batch', '{"no": 99}', '{"state": "none"}', 1);
SELECT lockfence.guarded_update('batch', '{"no": 1}', '{"state": "stale"}', 1);
\echo :LAST_ERROR_SQLSTATE
-- ... and a higher token advances the mark of the key's resource
SELECT lockfence.guarded_update('batch', '{"region": "asia", "no": 1}', '{"state": "none"}', 20);
SELECT lockfence.guarded_update('batch', '{"region": "asia", "no": 1}', '{"state": "none"}', 19);

-- A change that moves the row between resources is checked for both.
SELECT lockfence.guarded_update('batch', '{"region": "eu", "no": 2}', '{"region": "asia"}', 19);
SELECT lockfence.guarded_update('batch', '{"region": "eu", "no": 2}', '{"region": "asia"}', 20);
SELECT * FROM batch ORDER BY region, no;

-- The token is the call's: the transaction's ambient one is as it was afterwards.
BEGIN;
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"state": "call"}', 20);
SELECT * FROM lockfence.presented();
-- ... what it held is held, since the transaction has written by it
UPDATE batch SET state = 'held' WHERE region = 'eu';
UPDATE batch SET state = 'other' WHERE region = 'asia';
ROLLBACK;
BEGIN;
SELECT lockfence.present(20);
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"state": "same"}', 20);
SELECT * FROM lockfence.presented() ORDER BY resource NULLS FIRST;
SAVEPOINT s;
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"state": "conflict"}', 21);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
SELECT * FROM lockfence.presented() ORDER BY resource NULLS FIRST;
SELECT lockfence.guarded_delete('batch', '{"region": "eu"}', 21);
ROLLBACK;
-- ... after an error in the call as well
BEGIN;
SAVEPOINT s;
SELECT lockfence.guarded_update('batch', '{"region": "eu", "no": 1}', '{"no": null}', 20);
ROLLBACK TO s;
SELECT count(*) FROM lockfence.presented();
COMMIT;
DO $$
BEGIN
	BEGIN
		PERFORM lockfence.guarded_update('test_guarded.batch', '{"region": "eu", "no": 1}', '{"no": null}', 20);
	EXCEPTION WHEN not_null_violation THEN
		NULL;
	END;
	RAISE INFO 'presented: %', (SELECT count(*) FROM lockfence.presented());
END
$$;
-- A token presented for the resource, and another one given: the higher advances, the lower is stale.
BEGIN;
SELECT lockfence.present('guarded:eu', 20);
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"state": "higher"}', 21);
SELECT * FROM lockfence.presented();
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"state": "lower"}', 20);
ROLLBACK;
-- The token column may be among the changes, if it agrees.
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"state": "both", "token": 20}', 20);
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"token": 21}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"token": "9007199254740993"}', 9007199254740993);
SELECT lockfence.guarded_update('batch', '{"region": "eu"}', '{"token": null}', 9007199254740993);

-- Errors of the call: each says what is wrong.
SELECT lockfence.guarded_update('batch', '{}', '{"state": "x"}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('batch', '{"no": 1}', '{}', 20);
SELECT lockfence.guarded_delete('batch', '{}', 20);
SELECT lockfence.guarded_update('batch', '[1]', '{"state": "x"}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('batch', '{"no": 1}', '"state"', 20);
SELECT lockfence.guarded_delete('batch', 'null', 20);
SELECT lockfence.guarded_update('batch', NULL, '{"state": "x"}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('batch', '{"no": 1}', NULL, 20);
SELECT lockfence.guarded_delete('batch', NULL, 20);
SELECT lockfence.guarded_update(NULL, '{"no": 1}', '{"state": "x"}', 20);
SELECT lockfence.guarded_update('batch', '{"no": 1}', '{"state": "x"}', NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('batch', '{"no": 1}', '{"state": "x"}', 0);
SELECT lockfence.guarded_delete('batch', '{"no": 1}', -1);
SELECT lockfence.guarded_update('batch', '{"nothing": 1}', '{"state": "x"}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('batch', '{"no": 1}', '{"State": "x"}', 20);
SELECT lockfence.guarded_update('batch', '{"ctid": "(0,1)"}', '{"state": "x"}', 20);
SELECT lockfence.guarded_update('batch', '{"no": 1}', '{"xmin": 1}', 20);
SELECT lockfence.guarded_update('batch', '{"no": "one"}', '{"state": "x"}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('batch', '{"no": 1}', '{"amount": {"a": 1}}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('batch', '{"no": [1]}', '{"state": "x"}', 20);
CREATE TABLE unfenced (id integer);
SELECT lockfence.guarded_update('unfenced', '{"id": 1}', '{"id": 2}', 20);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_delete('unfenced', '{"id": 1}', 20);
CREATE VIEW shown AS SELECT * FROM batch;
SELECT lockfence.guarded_update('shown', '{"no": 1}', '{"state": "x"}', 20);
CREATE TABLE made (id integer PRIMARY KEY, twice integer GENERATED ALWAYS AS (id * 2) STORED,
	no integer GENERATED ALWAYS AS IDENTITY);
SELECT lockfence.attach('made', 'guarded:made', 'token');
INSERT INTO made VALUES (1, DEFAULT, DEFAULT, 5);
SELECT lockfence.guarded_update('made', '{"id": 1}', '{"twice": 5}', 5);
SELECT lockfence.guarded_update('made', '{"id": 1}', '{"no": 5}', 5);
SELECT lockfence.guarded_update('made', '{"twice": 2, "no": 1}', '{"id": 2}', 5);
SELECT * FROM made;

-- Row fences: the row's mark decides, and no row is 0 rows.
CREATE TABLE job (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('job');
INSERT INTO job VALUES (1, 'new', 10);
SELECT lockfence.guarded_update('job', '{"id": 1}', '{"note": "set"}', 11);
SELECT lockfence.guarded_update('job', '{"id": 1}', '{"note": "stale"}', 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('job', '{"id": 2}', '{"note": "none"}', 1);
SELECT lockfence.guarded_delete('job', '{"id": 1}', 10);
SELECT lockfence.guarded_delete('job', '{"id": 1}', 11);
-- a table that shadows the target in the search path: the statement names its own in full
INSERT INTO job VALUES (3, 'new', 10);
CREATE TEMP TABLE job (id integer, note text);
INSERT INTO pg_temp.job VALUES (3, 'temporary');
SELECT lockfence.guarded_update('test_guarded.job', '{"id": 3}', '{"note": "its own"}', 10);
SET search_path = pg_catalog;
SELECT lockfence.guarded_update('test_guarded.job', '{"id": 3}', '{"note": "out of the path"}', 10);
SET search_path = test_guarded;
SELECT * FROM test_guarded.job;
SELECT * FROM pg_temp.job;
DROP TABLE pg_temp.job;
-- Constant fences, by statement and by row.
CREATE TABLE ledger (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('ledger', 'guarded:ledger');
SELECT lockfence.guarded_update('ledger', '{"id": 1}', '{"note": "none"}', 10);
SELECT lockfence.guarded_delete('ledger', '{"id": 1}', 9);
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present(10);
INSERT INTO ledger VALUES (1, 'new');
COMMIT;
SELECT lockfence.guarded_update('ledger', '{"id": 1}', '{"note": "set"}', 10);
-- Partitioned tables.
CREATE TABLE part (id integer, place text, note text) PARTITION BY LIST (place);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b (note text, place text, id integer);
ALTER TABLE part ATTACH PARTITION part_b FOR VALUES IN ('b');
SELECT lockfence.attach('part', 'guarded:part-{id}', 'token');
INSERT INTO part VALUES (1, 'a', 'new', 10);
SELECT lockfence.guarded_update('part', '{"id": 1}', '{"place": "b", "note": "moved"}', 10);
SELECT lockfence.guarded_update('part_b', '{"id": 1}', '{"note": "leaf"}', 10);
SELECT lockfence.guarded_update('part_b', '{"id": 1}', '{"note": "leaf"}', 9);
SELECT tableoid::regclass, * FROM part;

-- kept plans: of a column that was renamed or has another type, of a table that was renamed or made again
CREATE TABLE plan (id integer PRIMARY KEY, value integer);
SELECT lockfence.attach('plan', 'guarded:plan', 'token');
INSERT INTO plan VALUES (1, 1, 10);
SELECT lockfence.guarded_update('plan', '{"id": 1}', '{"value": 7}', 10);
ALTER TABLE plan ALTER value TYPE text;
SELECT lockfence.guarded_update('plan', '{"id": 1}', '{"value": "text"}', 10);
SELECT * FROM plan;
ALTER TABLE plan ALTER value TYPE integer USING 5;
SELECT lockfence.guarded_update('plan', '{"id": 1}', '{"value": 8}', 10);
ALTER TABLE plan ALTER id TYPE bigint;
SELECT lockfence.guarded_update('plan', '{"id": 9007199254740993}', '{"value": 8}', 10);
SELECT lockfence.guarded_update('plan', '{"id": 1}', '{"value": 9}', 10);
ALTER TABLE plan RENAME value TO amount;
SELECT lockfence.guarded_update('plan', '{"id": 1}', '{"value": 10}', 10);
SELECT lockfence.guarded_update('plan', '{"id": 1}', '{"amount": 10}', 10);
ALTER TABLE plan ADD value integer;
SELECT lockfence.guarded_update('plan', '{"id": 1}', '{"value": 11}', 10);
SELECT * FROM plan;
ALTER TABLE plan RENAME TO plan_before;
CREATE TABLE plan (value text, id text);
SELECT lockfence.attach('plan', 'guarded:plan', 'token');
INSERT INTO plan VALUES ('new', '1', 10);
SELECT lockfence.guarded_update('plan', '{"id": "1"}', '{"value": "other table"}', 10);
SELECT lockfence.guarded_update('plan_before', '{"id": 1}', '{"value": 12}', 10);
SELECT * FROM plan;
SELECT * FROM plan_before;
-- ... and more of them than are kept
CREATE TABLE wide (id integer PRIMARY KEY);
DO $$
BEGIN
	EXECUTE (SELECT format('ALTER TABLE wide %s', string_agg(format('ADD c%s integer', n), ', ')) FROM generate_series(1, 300) n);
END
$$;
SELECT lockfence.attach('wide', 'guarded:wide', 'token');
INSERT INTO wide (id, token) VALUES (1, 10);
SELECT sum(lockfence.guarded_update('wide', '{"id": 1}', jsonb_build_object('c' || n, n), 10)) FROM generate_series(1, 300) n;
SELECT c1, c2, c299, c300 FROM wide;
-- ... by a trigger of a guarded write
CREATE TABLE outer_one (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('outer_one', 'guarded:outer', 'token');
INSERT INTO outer_one VALUES (1, 'new', 10);
CREATE FUNCTION write_wide() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM lockfence.guarded_update('test_guarded.wide', '{"id": 1}', jsonb_build_object('c' || n, -n, 'c' || n + 1, 0), 10)
	FROM generate_series(1, 298, 3) n;
	RETURN NULL;
END
$$;
CREATE TRIGGER write_wide AFTER UPDATE ON outer_one FOR EACH ROW EXECUTE FUNCTION write_wide();
SELECT lockfence.guarded_update('outer_one', '{"id": 1}', '{"note": "outer"}', 10);
SELECT c1, c2, c298, c299 FROM wide;
-- ... by a trigger, which has put another table in the place of the one that is written
CREATE TABLE swapped (id integer PRIMARY KEY, note integer);
SELECT lockfence.attach('swapped', 'guarded:swapped', 'token');
INSERT INTO swapped VALUES (1, 0, 10);
CREATE FUNCTION swap_table() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	ALTER TABLE swapped RENAME TO swapped_before;
	CREATE TABLE swapped (id text PRIMARY KEY, note text);
	PERFORM lockfence.attach('swapped', 'guarded:swapped', 'token');
	INSERT INTO swapped VALUES ('1', 'new', 10);
	PERFORM lockfence.guarded_update('swapped', '{"id": "1"}', '{"note": "inner"}', 10);
	RETURN new;
END
$$;
SELECT lockfence.guarded_update('swapped', '{"id": 1}', '{"note": 1}', 10);
CREATE TRIGGER swap_table BEFORE UPDATE ON swapped FOR EACH ROW EXECUTE FUNCTION swap_table();
SELECT lockfence.guarded_update('swapped', '{"id": 1}', '{"note": 2}', 10);
SELECT * FROM swapped;
SELECT * FROM swapped_before;

-- a table that is none
SELECT lockfence.guarded_update(4000000000::oid::regclass, '{"id": 1}', '{"note": "x"}', 10);
SELECT lockfence.guarded_delete(4000000000::oid::regclass, '{"id": 1}', 10);
SELECT lockfence.resource_of(4000000000::oid::regclass, ROW(1));

DROP SCHEMA test_guarded CASCADE;
