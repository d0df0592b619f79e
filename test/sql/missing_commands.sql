-- missing => 'allow insert, ...': some commands need no token, the others do.
\set SHOW_CONTEXT never
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA test_missing_commands;
SET search_path = test_missing_commands;

-- However it is written, it is stored one way.
CREATE TABLE stored (id integer);
CREATE FUNCTION stored(setting text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM lockfence.attach('stored', 'missing_commands:stored', missing => setting);
	SELECT missing INTO result FROM lockfence.fences WHERE target = 'stored'::regclass;
	PERFORM lockfence.detach('stored');
	RETURN result;
EXCEPTION WHEN invalid_parameter_value THEN
	RETURN 'error: ' || SQLERRM;
END
$$;
SELECT s AS given, stored(s) FROM unnest(ARRAY['reject', 'allow', 'allow insert', 'allow update,insert', 'allow  TRUNCATE , delete,
	Update', 'allow insert, insert', 'allow insert, update, delete', 'Allow Delete', 'REJECT',
	'', 'insert', 'allow insert,', 'allow ,insert', 'allow insert update', 'allowinsert', 'allow insertion', 'allow select',
	'reject insert', 'allow insert; x', NULL]) AS s;
\set VERBOSITY default
SELECT lockfence.attach('stored', 'missing_commands:stored', missing => 'allow select');
SELECT lockfence.attach('stored', 'missing_commands:stored', missing => 'allow insert', repeat => 'reject');
\set VERBOSITY terse
-- A guard whose trigger says it another way, as an owner may write it
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON stored
FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('resource=missing_commands:stored', 'missing=allow Update,Insert');
SELECT missing FROM lockfence.fences WHERE target = 'stored'::regclass;

-- Runs a statement, and takes back what it did; on several fences alike.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RAISE EXCEPTION USING ERRCODE = 'ZZ000';
EXCEPTION
	WHEN SQLSTATE 'ZZ000' THEN RETURN 'passes';
	WHEN OTHERS THEN RETURN SQLSTATE;
END
$$;
CREATE TABLE parent (id integer PRIMARY KEY);
CREATE TABLE row_fence (id integer PRIMARY KEY, parent integer REFERENCES parent ON UPDATE CASCADE ON DELETE CASCADE, note text,
	fence lockfence.fence_token);
CREATE TABLE template (LIKE row_fence INCLUDING ALL, FOREIGN KEY (parent) REFERENCES parent ON UPDATE CASCADE ON DELETE CASCADE);
CREATE TABLE constant (LIKE row_fence INCLUDING ALL, FOREIGN KEY (parent) REFERENCES parent ON UPDATE CASCADE ON DELETE CASCADE);
INSERT INTO parent VALUES (1), (2), (3);
INSERT INTO row_fence VALUES (1, 1, 'old', 10);
INSERT INTO template VALUES (1, 2, 'old', 10);
INSERT INTO constant VALUES (1, 3, 'old', 10);
CREATE FUNCTION outcomes(setting text) RETURNS TABLE (statement text, row_fence text, template text, constant text)
LANGUAGE plpgsql AS $$
DECLARE
	parent integer;
	fenced text;
	found text[];
BEGIN
	PERFORM lockfence.detach(f.target) FROM lockfence.fences f
	WHERE f.target = ANY (ARRAY['row_fence', 'template', 'constant']::regclass[]);
	PERFORM lockfence.attach('row_fence', missing => setting);
	PERFORM lockfence.attach('template', 'missing_commands:{id}', 'fence', missing => setting);
	PERFORM lockfence.attach('constant', 'missing_commands:constant', missing => setting);
	FOREACH statement IN ARRAY ARRAY['INSERT INTO %I VALUES (2)', 'UPDATE %I SET note = ''x''', 'DELETE FROM %I', 'TRUNCATE %I',
		'INSERT INTO %I VALUES (2) ON CONFLICT DO NOTHING',
		'INSERT INTO %I VALUES (1) ON CONFLICT (id) DO UPDATE SET note = ''x''',
		'INSERT INTO %I VALUES (2) ON CONFLICT (id) DO UPDATE SET note = ''x''',
		'UPDATE parent SET id = id + 10 WHERE id = %2$s', 'DELETE FROM parent WHERE id = %2$s',
		'WITH gone AS (DELETE FROM %I RETURNING id) INSERT INTO %1$I SELECT id + 1 FROM gone']
	LOOP
		found := '{}';
		parent := 1;
		FOREACH fenced IN ARRAY ARRAY['row_fence', 'template', 'constant'] LOOP
			found := found || outcome(format(statement, fenced, parent));
			parent := parent + 1;
		END LOOP;
		row_fence := found[1];
		template := found[2];
		constant := found[3];
		RETURN NEXT;
	END LOOP;
END
$$;
SELECT * FROM outcomes('reject');
SELECT * FROM outcomes('allow');
SELECT * FROM outcomes('allow insert');
SELECT * FROM outcomes('allow update');
SELECT * FROM outcomes('allow delete');
SELECT * FROM outcomes('allow truncate');
SELECT * FROM outcomes('allow insert, update, delete, truncate');

-- A producer that needs no token, and consumers that do: a token that is presented is judged all the same.
SELECT lockfence.detach('template');
SELECT lockfence.attach('template', 'missing_commands:{id}', 'fence', missing => 'allow insert');
INSERT INTO template VALUES (5, 1, 'new');
COPY template (id, note) FROM STDIN;
6	copied
\.
UPDATE template SET note = 'taken', fence = 20 WHERE id = 5;
INSERT INTO template VALUES (7, 1, 'new', 5);
DELETE FROM template WHERE id = 7;
INSERT INTO template VALUES (5, 1, 'again', 19) ON CONFLICT (id) DO UPDATE SET note = 'stale';
\set VERBOSITY default
UPDATE template SET note = 'missing' WHERE id = 6;
\set VERBOSITY terse
BEGIN;
SELECT lockfence.present(4);
INSERT INTO template VALUES (7, 1, 'stale') ON CONFLICT DO NOTHING;
ROLLBACK;
SELECT * FROM template WHERE id > 4 ORDER BY id;
-- MERGE came with 15; it fires the guards of the commands that it runs.
DO $$
BEGIN
	IF current_setting('server_version_num')::int < 150000 THEN
		RETURN;
	END IF;
	ASSERT outcome('MERGE INTO template t USING (VALUES (8)) AS s (id) ON t.id = s.id'
		' WHEN MATCHED THEN UPDATE SET note = ''x'' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)') = 'passes';
	ASSERT outcome('MERGE INTO template t USING (VALUES (5)) AS s (id) ON t.id = s.id'
		' WHEN MATCHED THEN UPDATE SET note = ''x'' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)') = 'LF002';
END
$$;

-- An UPDATE that moves a row to another partition is an UPDATE there too, not an INSERT.
CREATE TABLE part (id integer, region text, note text) PARTITION BY LIST (region);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF part FOR VALUES IN ('b');
SELECT lockfence.attach('part', 'missing_commands:part-{id}', missing => 'allow insert');
INSERT INTO part VALUES (1, 'a');
UPDATE part SET region = 'b';
BEGIN;
SELECT lockfence.present(30);
UPDATE part SET region = 'b';
COMMIT;
SELECT tableoid::regclass, * FROM part;
SELECT lockfence.detach('part');
-- ... from a partition that is lenient into one that is lenient towards INSERT alone
SELECT lockfence.attach('part_a', 'missing_commands:part_a-{id}', missing => 'allow');
SELECT lockfence.attach('part_b', 'missing_commands:part_b-{id}', missing => 'allow insert');
INSERT INTO part VALUES (2, 'a'), (3, 'b');
UPDATE part SET region = 'b' WHERE id = 2;
-- ... and out of one that demands a token of a DELETE
UPDATE part SET region = 'a' WHERE id = 3;
SELECT lockfence.detach('part_a'), lockfence.detach('part_b');
SELECT lockfence.attach('part_a', 'missing_commands:part_a-{id}', missing => 'allow update');
SELECT lockfence.attach('part_b', 'missing_commands:part_b-{id}', missing => 'allow update');
UPDATE part SET region = 'b' WHERE id = 2;
SELECT tableoid::regclass, * FROM part ORDER BY id;

-- TRUNCATE: a token that nothing can compare is not passed over, and a sealed table is sealed for it too.
SELECT lockfence.detach('row_fence');
SELECT lockfence.attach('row_fence', missing => 'allow truncate');
BEGIN;
SELECT lockfence.present(1);
TRUNCATE row_fence;
ROLLBACK;
SELECT lockfence.detach('template');
SELECT lockfence.attach('template', 'missing_commands:{id}', missing => 'allow truncate');
BEGIN;
DELETE FROM lockfence.fenced WHERE target = 'template'::regclass;
TRUNCATE template;
ROLLBACK;
BEGIN;
TRUNCATE template;
ROLLBACK;

-- verify() says what is let pass.
SELECT code, problem FROM lockfence.verify('template') WHERE code = 'missing_allowed';
SELECT code, problem FROM lockfence.verify('part_a') WHERE code = 'missing_allowed';
DROP SCHEMA test_missing_commands CASCADE;
