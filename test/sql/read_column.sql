-- accept => 'read': a number that the application keeps in a column of its own is the token.  And what a fence adds to a table.
\set SHOW_CONTEXT never
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA test_read_column;
SET search_path = test_read_column;

-- A template fence without a token column adds nothing: rows, prepared statements and positional INSERTs are as before.
CREATE TABLE plain (id integer PRIMARY KEY, note text);
CREATE FUNCTION into_type() RETURNS plain LANGUAGE plpgsql AS $$
DECLARE
	result plain;
BEGIN
	PERFORM lockfence.present(1);
	UPDATE plain SET note = note || '!' WHERE id = 1 RETURNING * INTO STRICT result;
	RETURN result;
END
$$;
PREPARE everything AS SELECT * FROM plain;
PREPARE positional AS INSERT INTO plain VALUES ($1, $2) RETURNING *;
INSERT INTO plain VALUES (1, 'x');
EXECUTE everything;
SELECT lockfence.attach('plain', 'read_column:plain-{id}');
EXECUTE everything;
SELECT * FROM into_type();
BEGIN;
SELECT lockfence.present(1);
EXECUTE positional (2, 'y');
COMMIT;
SELECT attname FROM pg_attribute WHERE attrelid = 'plain'::regclass AND attnum > 0;

-- An attempt number of each width.  What reads it is the fence; the statement writes it.
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'passes';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ': ' || SQLERRM;
END
$$;
CREATE TABLE job (id text, attempt bigint DEFAULT 0, note text);
CREATE TABLE told (n serial, type text, at_end boolean, step text, outcome text, attempt bigint, mark bigint);
CREATE PROCEDURE story(type text, at_end boolean) LANGUAGE plpgsql AS $$
DECLARE
	lock text := format('read_column:%s-%s', type, at_end);
	statement text;
	outcome text;
BEGIN
	DROP TABLE job;
	EXECUTE format(CASE WHEN at_end THEN 'CREATE TABLE job (id text, note text, attempt %s NOT NULL DEFAULT 0)'
		ELSE 'CREATE TABLE job (attempt %s NOT NULL DEFAULT 0, note text, id text)' END, type);
	PERFORM lockfence.attach('job', lock || '-{id}', 'attempt', accept => 'read', missing => 'allow insert');
	FOREACH statement IN ARRAY ARRAY[
		$_$INSERT INTO job (id) VALUES ('a')$_$,
		$_$UPDATE job SET note = 'none'$_$,
		$_$UPDATE job SET attempt = attempt + 1, note = 'taken'$_$,
		$_$UPDATE job SET attempt = attempt + 1, note = 'taken again'$_$,
		$_$UPDATE job SET attempt = 1, note = 'stale'$_$,
		$_$UPDATE job SET attempt = 2, note = 'done'$_$,
		$_$UPDATE job SET attempt = 0, note = 'none'$_$,
		$_$UPDATE job SET attempt = -1, note = 'invalid'$_$,
		$_$DELETE FROM job$_$,
		$_$SELECT lockfence.guarded_update('job', '{"id": "a"}', '{"note": "presented"}', 2)$_$,
		$_$SELECT lockfence.guarded_update('job', '{"id": "a"}', '{"note": "stale"}', 1)$_$,
		$_$SELECT lockfence.guarded_update('job', '{"id": "a"}', '{"note": "higher"}', 30000)$_$,
		$_$UPDATE job SET attempt = 3, note = 'stale'$_$,
		$_$SELECT lockfence.guarded_update('job', '{"id": "a"}', '{"note": "beyond the column"}', 99999999999)$_$,
		$_$SELECT lockfence.guarded_delete('job', '{"id": "a"}', 99999999999)$_$]
	LOOP
		outcome := replace(try(statement), lock, 'LOCK');
		INSERT INTO told (type, at_end, step, outcome, attempt, mark)
		SELECT story.type, story.at_end, statement, outcome, (SELECT j.attempt FROM job j),
			(SELECT m.token FROM lockfence.mark m WHERE m.resource = lock || '-a');
		COMMIT;
	END LOOP;
END
$$;
CALL story('integer', true);
SELECT step, outcome, attempt, mark FROM told ORDER BY n;
-- ... and it is the same for each width and place
CALL story('integer', false);
CALL story('smallint', true);
CALL story('smallint', false);
CALL story('bigint', true);
CALL story('bigint', false);
CALL story('lockfence.fence_token', true);
CALL story('lockfence.fence_token', false);
WITH each AS (
	SELECT type, at_end, array_agg(ROW(outcome, attempt, mark)::text ORDER BY n) AS steps FROM told GROUP BY type, at_end
)
SELECT type, at_end, steps = (SELECT steps FROM each WHERE type = 'integer' AND at_end) AS alike FROM each ORDER BY type, at_end;

-- Null is no token either; and a trigger's own number is what the statement wrote, if the statement sets the column.
DROP TABLE job;
CREATE TABLE job (id integer PRIMARY KEY, attempt integer, note text);
SELECT lockfence.attach('job', 'read_column:null-{id}', 'attempt', accept => 'read', missing => 'allow');
INSERT INTO job VALUES (1, NULL, 'new'), (2, 0, 'new');
UPDATE job SET attempt = NULL;
UPDATE job SET attempt = 3;
UPDATE job SET attempt = NULL;
UPDATE job SET attempt = 2;
SELECT * FROM job ORDER BY id;
-- A row's number stands for a mark that is missing, and reconcile() raises marks to it.
DELETE FROM job;
SELECT lockfence.detach('job');
INSERT INTO job VALUES (3, 7, 'older than the fence');
SELECT lockfence.attach('job', 'read_column:null-{id}', 'attempt', accept => 'read');
SELECT code FROM lockfence.verify('job') WHERE target = 'job'::regclass;
UPDATE job SET attempt = 6;
SELECT lockfence.reconcile('job');
SELECT token FROM lockfence.mark WHERE resource = 'read_column:null-3';
-- A run of rows, presented once and by each row
INSERT INTO job SELECT 10, 5, 'run' UNION ALL SELECT 11, 5, 'run' UNION ALL SELECT 12, 0, 'none';
INSERT INTO job VALUES (10, 5, 'run'), (11, 5, 'run');
BEGIN;
SELECT lockfence.present(8);
UPDATE job SET note = 'presented' WHERE id <> 3;
UPDATE job SET note = 'conflict', attempt = 6 WHERE id = 10;
ROLLBACK;
-- An advisory fence leaves the column alone too.
SELECT lockfence.detach('job');
SELECT lockfence.attach('job', 'read_column:null-{id}', 'attempt', accept => 'read', enforcement => 'advisory');
UPDATE job SET attempt = 4 WHERE id = 10;
SELECT attempt FROM job WHERE id = 10;

-- Between partitions, whose columns have other numbers
CREATE TABLE part (id integer, region text, attempt integer NOT NULL DEFAULT 0) PARTITION BY LIST (region);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b (gone integer, attempt integer NOT NULL DEFAULT 0, region text, id integer);
ALTER TABLE part_b DROP COLUMN gone;
ALTER TABLE part ATTACH PARTITION part_b FOR VALUES IN ('b');
SELECT lockfence.attach('part', 'read_column:part-{id}', 'attempt', accept => 'read', missing => 'allow insert');
INSERT INTO part VALUES (1, 'a');
UPDATE part SET region = 'b';
UPDATE part SET region = 'b', attempt = 2;
UPDATE part SET region = 'a', attempt = 1;
UPDATE part SET region = 'a', attempt = 2;
SELECT tableoid::regclass, * FROM part;

-- What is refused
\set VERBOSITY default
CREATE TABLE unfit (id integer, a integer, t text, g integer GENERATED ALWAYS AS (id + 1) STORED, i integer GENERATED ALWAYS AS IDENTITY,
	d integer DEFAULT 1, s smallint DEFAULT 0, b bigint DEFAULT 0, z integer DEFAULT '0', n numeric);
SELECT lockfence.attach('unfit', accept => 'read');
SELECT lockfence.attach('unfit', token_column => 'a', accept => 'read');
SELECT lockfence.attach('unfit', 'read_column:{id}', accept => 'read');
\set VERBOSITY terse
SELECT lockfence.attach('unfit', 'read_column:{id}', 'missing', accept => 'read');
SELECT lockfence.attach('unfit', 'read_column:{id}', 't', accept => 'read');
SELECT lockfence.attach('unfit', 'read_column:{id}', 'n', accept => 'read');
SELECT lockfence.attach('unfit', 'read_column:{id}', 'ctid', accept => 'read');
SELECT lockfence.attach('unfit', 'read_column:{id}', 'g', accept => 'read');
SELECT lockfence.attach('unfit', 'read_column:{id}', 'i', accept => 'read');
SELECT lockfence.attach('unfit', 'read_column:{id}', 'd', accept => 'read');
SELECT lockfence.attach('unfit', 'read_column:{id}', 'id', accept => 'read');
SELECT lockfence.attach('unfit', 'read_column:{id}', 'a');
SELECT c, try(format('SELECT lockfence.attach(''unfit'', ''read_column:{id}'', %L, accept => ''read''), lockfence.detach(''unfit'')', c))
FROM unnest(ARRAY['a', 's', 'b', 'z']) AS c;
SELECT lockfence.attach('unfit', 'read_column:{id}', 'a', accept => 'read');
SELECT kind, token_column, accept, missing FROM lockfence.fences WHERE target = 'unfit'::regclass;
SELECT code, problem, advice FROM lockfence.verify('unfit') WHERE target = 'unfit'::regclass;
-- ... or found, where it changes later; 0 and other widths are fine
ALTER TABLE unfit ALTER COLUMN a SET DEFAULT 0;
SELECT code FROM lockfence.verify('unfit') WHERE target = 'unfit'::regclass;
ALTER TABLE unfit ALTER COLUMN a SET DEFAULT 5;
SELECT severity, code, problem FROM lockfence.verify('unfit') WHERE target = 'unfit'::regclass;
ALTER TABLE unfit ALTER COLUMN a DROP DEFAULT, ALTER COLUMN a TYPE bigint;
INSERT INTO unfit (id, a) VALUES (1, 99999999999);
SELECT code FROM lockfence.verify('unfit') WHERE target = 'unfit'::regclass;
ALTER TABLE unfit ALTER COLUMN a TYPE numeric;
SELECT severity, code, problem, advice FROM lockfence.verify('unfit') WHERE target = 'unfit'::regclass;
INSERT INTO unfit (id, a) VALUES (1, 2);
-- A guard as an owner may write it
CREATE TABLE made (id integer, attempt integer);
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON made
FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('token_column=attempt', 'accept=read');
INSERT INTO made VALUES (1, 1);
SELECT problem FROM lockfence.verify('made') WHERE target = 'made'::regclass AND problem ~ 'arguments';
DROP SCHEMA test_read_column CASCADE;
