-- Every statement that writes: INSERT, upsert, MERGE, COPY, writable CTEs, into partitions too.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_statements;
SET search_path = test_statements;
CREATE TABLE item (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'statements:{id}', 'token');

-- INSERT ... SELECT
INSERT INTO item SELECT n, 'new', 10 FROM generate_series(1, 5) n;
INSERT INTO item SELECT n, 'no token' FROM generate_series(6, 7) n;
INSERT INTO item (token, id, note) SELECT 9, id + 10, note FROM item WHERE id = 1 UNION ALL SELECT 9, 1, 'stale';
\echo :LAST_ERROR_SQLSTATE
-- DEFAULT VALUES and RETURNING
INSERT INTO item (id) VALUES (6) RETURNING *;
INSERT INTO item (id, token) VALUES (6, 10) RETURNING *;

-- upsert: DO UPDATE fires both guards, and the one for UPDATE takes the token that INSERT has shown
INSERT INTO item VALUES (1, 'upsert', 10) ON CONFLICT (id) DO UPDATE SET note = excluded.note RETURNING *;
INSERT INTO item VALUES (1, 'upsert', 12) ON CONFLICT (id) DO UPDATE SET note = excluded.note RETURNING *;
INSERT INTO item VALUES (1, 'stale', 11) ON CONFLICT (id) DO UPDATE SET note = excluded.note;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO item VALUES (1, 'no token') ON CONFLICT (id) DO UPDATE SET note = excluded.note;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO item VALUES (1, 'both', 13) ON CONFLICT (id) DO UPDATE SET note = excluded.note, token = excluded.token RETURNING *;
INSERT INTO item VALUES (1, 'two', 13) ON CONFLICT (id) DO UPDATE SET note = excluded.note, token = 14;
\echo :LAST_ERROR_SQLSTATE
-- ... whose target may be another resource, for which the INSERT has shown nothing
CREATE TABLE keyed (id integer PRIMARY KEY, grp text NOT NULL, note text);
SELECT lockfence.attach('keyed', 'statements:{grp}', 'token');
INSERT INTO keyed VALUES (1, 'a', 'new', 10);
INSERT INTO keyed VALUES (1, 'b', 'upsert', 10) ON CONFLICT (id) DO UPDATE SET note = excluded.note;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO keyed VALUES (1, 'b', 'upsert', 9) ON CONFLICT (id) DO UPDATE SET note = excluded.note, token = excluded.token;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO keyed VALUES (1, 'b', 'moved', 11) ON CONFLICT (id) DO UPDATE
	SET grp = excluded.grp, note = excluded.note, token = excluded.token RETURNING *;
-- upsert on a row fence: the INSERT presents its token to a row that is not there; the UPDATE has to present it again
CREATE TABLE rowwise (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('rowwise');
INSERT INTO rowwise VALUES (1, 'new', 10);
INSERT INTO rowwise VALUES (1, 'stale', 9) ON CONFLICT (id) DO UPDATE SET note = excluded.note;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO rowwise VALUES (1, 'stale', 9) ON CONFLICT (id) DO UPDATE SET note = excluded.note, fence = excluded.fence;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO rowwise VALUES (1, 'upsert', 10) ON CONFLICT (id) DO UPDATE SET note = excluded.note, fence = excluded.fence
RETURNING *;
-- DO NOTHING fires the guard of INSERT, and what it advances stays
INSERT INTO item VALUES (2, 'nothing') ON CONFLICT DO NOTHING;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO item VALUES (2, 'nothing', 9) ON CONFLICT DO NOTHING;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO item VALUES (2, 'nothing', 11) ON CONFLICT DO NOTHING RETURNING *;
SELECT token FROM item WHERE id = 2;
UPDATE item SET note = 'stale', token = 10 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE

-- COPY
COPY item FROM stdin;
20	copied	10
21	copied	10
\.
COPY item (id, note) FROM stdin;
22	no token
\.
COPY item (token, id) FROM stdin;
9	20
\.
BEGIN;
SELECT lockfence.present(10);
COPY item (id, note) FROM stdin;
22	presented
\.
COMMIT;
SELECT * FROM item WHERE id >= 20 ORDER BY id;

-- MERGE, where there is one: each branch is judged as the statement that it stands for, except that the SET
-- lists of all branches count together.
CREATE FUNCTION merge_outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
BEGIN;
DO $$
DECLARE
	source text := 'MERGE INTO test_statements.item i USING (VALUES (1), (90)) v (id) ON i.id = v.id ';
	expected text[] := ARRAY[
		'LF001', source || 'WHEN MATCHED THEN UPDATE SET note = ''stale'', token = 12',
		'LF002', source || 'WHEN MATCHED THEN UPDATE SET note = ''inherited''',
		'LF002', source || 'WHEN MATCHED THEN DELETE',
		'LF002', source || 'WHEN NOT MATCHED THEN INSERT VALUES (v.id, ''no token'')',
		'accepted', source || 'WHEN MATCHED THEN UPDATE SET note = ''merge'', token = 14 WHEN NOT MATCHED THEN INSERT VALUES (v.id, ''merge'', 14)',
		'LF006', source || 'WHEN MATCHED THEN UPDATE SET note = ''two'', token = 15',
		'accepted', 'MERGE INTO test_statements.item i USING (VALUES (3)) v (id) ON i.id = v.id '
			'WHEN MATCHED AND v.id = 3 THEN UPDATE SET note = ''union'' WHEN MATCHED THEN UPDATE SET token = 14'];
	outcome text;
BEGIN
	IF current_setting('server_version_num')::integer < 150000 THEN
		RETURN;
	END IF;
	FOR n IN 1..array_length(expected, 1) BY 2 LOOP
		outcome := test_statements.merge_outcome(expected[n + 1]);
		IF outcome <> expected[n] THEN
			RAISE EXCEPTION '% for %', outcome, expected[n + 1];
		END IF;
	END LOOP;
	PERFORM lockfence.present(14);
	outcome := test_statements.merge_outcome(source || 'WHEN MATCHED THEN DELETE');
	IF outcome <> 'accepted' OR EXISTS (SELECT FROM test_statements.item WHERE id IN (1, 90)) THEN
		RAISE EXCEPTION 'DELETE with a presented token: %', outcome;
	END IF;
END
$$;
ROLLBACK;

-- Writable CTEs
WITH gone AS (DELETE FROM item WHERE id = 20 RETURNING *) INSERT INTO item SELECT 30, note, token FROM gone;
\echo :LAST_ERROR_SQLSTATE
WITH changed AS (UPDATE item SET note = 'cte', token = 9 WHERE id = 20) SELECT 1;
\echo :LAST_ERROR_SQLSTATE
WITH changed AS (UPDATE item SET note = 'cte', token = 11 WHERE id = 20 RETURNING *)
INSERT INTO item SELECT 30, note, token FROM changed RETURNING *;
-- ... and the token may come from elsewhere.
UPDATE item SET note = 'joined', token = g.token FROM (VALUES (30, 12::bigint)) g (id, token) WHERE item.id = g.id RETURNING item.*;
UPDATE item SET (note, token) = (SELECT 'row', 8) WHERE id = 30;
UPDATE item SET note = 'null', token = (SELECT token FROM item WHERE false) WHERE id = 30;
\echo :LAST_ERROR_SQLSTATE

-- DELETE, with USING too
DELETE FROM item USING rowwise WHERE item.id = rowwise.id;
BEGIN;
SELECT lockfence.present(12);
DELETE FROM item WHERE id = 30 RETURNING *;
ROLLBACK;

-- Prepared statements, planned once, decide each time; so does a cursor's current row.
PREPARE write (text, bigint) AS UPDATE item SET note = $1, token = $2 WHERE id = 3;
EXECUTE write('one', 10);
EXECUTE write('two', 11);
EXECUTE write('stale', 10);
EXECUTE write('null', NULL);
BEGIN;
DECLARE current_row CURSOR FOR SELECT * FROM item WHERE id = 3 FOR UPDATE;
FETCH current_row;
UPDATE item SET note = 'inherited' WHERE CURRENT OF current_row;
ROLLBACK;

-- Into partitions whose columns have other numbers.
CREATE TABLE part (id integer, grp text, note text, PRIMARY KEY (id, grp)) PARTITION BY LIST (grp);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b (junk text, note text, grp text NOT NULL, id integer NOT NULL);
ALTER TABLE part_b DROP COLUMN junk;
ALTER TABLE part ATTACH PARTITION part_b FOR VALUES IN ('b');
SELECT lockfence.attach('part', 'statements:{grp}-{id}', 'token');
INSERT INTO part VALUES (1, 'a', 'new', 10), (1, 'b', 'new', 10);
INSERT INTO part VALUES (1, 'b', 'upsert', 11) ON CONFLICT (id, grp) DO UPDATE SET note = excluded.note RETURNING *;
INSERT INTO part VALUES (1, 'b', 'stale', 10) ON CONFLICT (id, grp) DO UPDATE SET note = excluded.note;
INSERT INTO part VALUES (1, 'b', 'no token') ON CONFLICT (id, grp) DO UPDATE SET note = excluded.note, token = 11;
INSERT INTO part VALUES (1, 'b', 'upsert', 12) ON CONFLICT (id, grp) DO UPDATE SET note = excluded.note, token = 12 RETURNING *;
INSERT INTO part VALUES (1, 'b', 'two', 12) ON CONFLICT (id, grp) DO UPDATE SET note = excluded.note, token = 13;
INSERT INTO part VALUES (1, 'b', 'nothing', 11) ON CONFLICT DO NOTHING;
COPY part FROM stdin;
2	a	copied	10
2	b	copied	10
\.
COPY part FROM stdin;
2	b	stale	9
\.
UPDATE part SET note = 'set', token = 13 WHERE id = 1;
UPDATE part SET note = 'inherited' WHERE id = 1 AND grp = 'b';
SELECT tableoid::regclass, * FROM part ORDER BY id, grp;
-- ... and on a row fence, where the UPDATE of the upsert is judged by its own SET list.
CREATE TABLE rowpart (id integer PRIMARY KEY, note text) PARTITION BY LIST (id);
CREATE TABLE rowpart_1 (fence lockfence.fence_token, junk text, note text, id integer NOT NULL);
ALTER TABLE rowpart_1 DROP COLUMN junk;
ALTER TABLE rowpart ADD fence lockfence.fence_token;
ALTER TABLE rowpart ATTACH PARTITION rowpart_1 FOR VALUES IN (1);
SELECT lockfence.attach('rowpart');
INSERT INTO rowpart VALUES (1, 'new', 10);
INSERT INTO rowpart VALUES (1, 'upsert', 10) ON CONFLICT (id) DO UPDATE SET note = excluded.note;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO rowpart VALUES (1, 'upsert', 9) ON CONFLICT (id) DO UPDATE SET note = excluded.note, fence = excluded.fence;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO rowpart VALUES (1, 'upsert', 11) ON CONFLICT (id) DO UPDATE SET note = excluded.note, fence = excluded.fence
RETURNING *;
UPDATE rowpart SET note = 'inherited';
\echo :LAST_ERROR_SQLSTATE

DROP SCHEMA test_statements CASCADE;
