-- A row whose token is above the mark of its resource, as after a write under bypass, or a mark that came back from
-- elsewhere: the higher of the two stands.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_above;
SET search_path = test_above;
CREATE TABLE item (id integer PRIMARY KEY, grp text, note text);
SELECT lockfence.attach('item', 'above:{grp}', 'token');
INSERT INTO item VALUES (1, 'a', 'new', 10), (2, 'a', 'new', 10), (3, 'b', 'new', 10);
CREATE TABLE key (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('key', 'above:key-{id}', 'token');
INSERT INTO key VALUES (1, 'new', 10), (2, 'new', 10);
CREATE VIEW marks AS SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'above:%' ORDER BY 1;
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE item SET token = 60 WHERE id = 2;
UPDATE key SET token = 60 WHERE id = 2;
COMMIT;

-- A token between the two is stale for that row, by whatever way it comes.
UPDATE item SET note = 'between', token = 50 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present(50);
UPDATE item SET note = 'between' WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT lockfence.present('above:a', 50);
DELETE FROM item WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SELECT lockfence.guarded_update('item', '{"id": 2}', '{"note": "between"}', 50);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_delete('item', '{"id": 2, "grp": "a"}', 50);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO item VALUES (2, 'a', 'between', 50) ON CONFLICT (id) DO UPDATE SET note = excluded.note;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET grp = 'b', token = 50 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
-- ... the mark's own too
UPDATE item SET note = 'equal to the mark', token = 10 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM marks;
SELECT * FROM item ORDER BY id;

-- Of one resource that the transaction holds already, or of rows in a row: each row is looked at.
BEGIN;
UPDATE item SET note = 'held', token = 50 WHERE id = 1;
SAVEPOINT s;
UPDATE item SET note = 'held' WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
UPDATE item SET note = 'held' WHERE grp = 'a';
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT lockfence.present(50);
UPDATE key SET note = 'in a row';
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
CREATE TABLE line (id integer, batch integer, note text);
SELECT lockfence.attach('line', 'above:batch-{batch}', 'token');
INSERT INTO line SELECT n, 1, 'new', 10 FROM generate_series(1, 20) n;
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE line SET token = 60 WHERE id = 17;
COMMIT;
UPDATE line SET note = 'run', token = 50;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present(50);
DELETE FROM line;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
UPDATE line SET note = 'run', token = 50 WHERE id <> 17;
-- ... also where the cache has the mark
SELECT lockfence.present('above:batch-1', 50);
SELECT lockfence.present('above:batch-1', 50);
UPDATE line SET note = 'cached', token = 50 WHERE id = 17;
\echo :LAST_ERROR_SQLSTATE

-- A row that moves between resources: its token counts for the one that it leaves, in either order of their names, ...
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE item SET token = 60 WHERE id = 3;
COMMIT;
UPDATE item SET grp = 'a', token = 50 WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
-- ... and not for the one that it comes to.
BEGIN;
SELECT lockfence.present('above:a', 60), lockfence.present('above:b', 50);
UPDATE item SET grp = 'b' WHERE id = 2;
ROLLBACK;
BEGIN;
SELECT lockfence.present('above:a', 50), lockfence.present('above:b', 60);
UPDATE item SET grp = 'a' WHERE id = 3;
ROLLBACK;
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE item SET token = 10 WHERE id = 3;
COMMIT;

-- The row's own token, and a higher one, pass and are the mark from then on.
UPDATE item SET note = 'same', token = 60 WHERE id = 2;
UPDATE key SET note = 'above', token = 61 WHERE id = 2;
BEGIN;
SELECT lockfence.present(60);
UPDATE line SET note = 'all';
COMMIT;
SELECT * FROM marks;
UPDATE item SET note = 'late', token = 50 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE

-- An advisory fence reports, and leaves both as they are; one that allows none lets the row pass without.
CREATE TABLE tried (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('tried', 'above:tried', 'token', enforcement => 'advisory');
CREATE TABLE free (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('free', 'above:free', 'token', missing => 'allow');
SELECT lockfence.present('above:tried', 10), lockfence.present('above:free', 10);
BEGIN;
SET LOCAL lockfence.bypass = on;
INSERT INTO tried VALUES (1, 'new', 60);
INSERT INTO free VALUES (1, 'new', 60);
COMMIT;
UPDATE tried SET note = 'reported', token = 50;
UPDATE free SET note = 'without';
UPDATE free SET note = 'between', token = 50;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM tried UNION ALL SELECT * FROM free;
-- A fence that takes a token for one transaction only has seen the row's.
CREATE TABLE once (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('once', 'above:once', 'token', repeat => 'reject');
INSERT INTO once VALUES (1, 'new', 10);
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE once SET token = 60;
COMMIT;
UPDATE once SET note = 'again', token = 60;
\echo :LAST_ERROR_SQLSTATE
UPDATE once SET note = 'next', token = 61;
SELECT * FROM marks WHERE resource IN ('above:tried', 'above:free', 'above:once');

-- After a mark was lowered, the rows that the stale token wrote are mended by hand.
SELECT lockfence.reset_mark('above:b', 5, 'token 10 was never issued');
UPDATE item SET note = 'after reset', token = 6 WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE item SET token = NULL WHERE grp = 'b' AND token > 5;
COMMIT;
UPDATE item SET note = 'after reset', token = 6 WHERE id = 3;

-- Wherever the token stands in the row: as the last value or not, null, out of line values before it, added later.
CREATE TABLE odd (id integer PRIMARY KEY, token bigint, filler text, gone bigint, late bigint);
ALTER TABLE odd ALTER filler SET STORAGE EXTERNAL;
SELECT lockfence.attach('odd', 'above:odd', 'token');
SELECT lockfence.present('above:odd', 10);
BEGIN;
SET LOCAL lockfence.bypass = on;
INSERT INTO odd VALUES (1, 60, 'x', 9, 9), (2, 60, NULL, NULL, NULL), (3, NULL, repeat('x', 9000), 99, 99), (4, 10, '', 99, 99);
COMMIT;
CREATE FUNCTION passing(token bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	passed text := '';
	row_id integer;
BEGIN
	FOR row_id IN SELECT id FROM test_above.odd ORDER BY id LOOP
		BEGIN
			EXECUTE format('UPDATE test_above.odd SET token = %s, filler = filler WHERE id = %s', token, row_id);
			RAISE division_by_zero;
		EXCEPTION
			WHEN division_by_zero THEN passed := passed || ' ' || row_id;
			WHEN SQLSTATE 'LF001' THEN NULL;
		END;
	END LOOP;
	RETURN passed;
END
$$;
SELECT passing(50), passing(60);
ALTER TABLE odd DROP late, DROP gone;
SELECT passing(50), passing(60);
SELECT lockfence.detach('odd');
ALTER TABLE odd DROP filler, ADD filler text DEFAULT repeat('y', 9000), ADD newer lockfence.fence_token;
SELECT lockfence.attach('odd', 'above:odd', 'newer');
ALTER TABLE odd DROP token;
ALTER TABLE odd RENAME newer TO token;
SELECT lockfence.detach('odd');
SELECT lockfence.attach('odd', 'above:odd', 'token');
SELECT passing(10), passing(9);
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE odd SET token = 60 WHERE id = 2;
UPDATE odd SET token = 60, filler = NULL WHERE id = 3;
COMMIT;
SELECT passing(50), passing(60);

-- The token of another resource stands for none: a row that goes over without a token of its own leaves it behind.
CREATE TABLE moving (id integer PRIMARY KEY, grp text, note text);
SELECT lockfence.attach('moving', 'above:{grp}', 'token', missing => 'allow');
INSERT INTO moving VALUES (1, 'a', 'new', 60);
UPDATE moving SET note = 'stays' RETURNING *;
UPDATE moving SET grp = 'c' RETURNING *;
UPDATE moving SET note = 'of c', token = 7 RETURNING *;
DROP SCHEMA test_above CASCADE;
