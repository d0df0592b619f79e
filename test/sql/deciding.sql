-- How a write is decided: what counts as presenting a token, and what does not.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_deciding;
SET search_path = test_deciding;
CREATE TABLE item (id integer PRIMARY KEY, grp text NOT NULL DEFAULT 'a', note text);
SELECT lockfence.attach('item', 'deciding:{grp}', 'token');
INSERT INTO item VALUES (1, 'a', 'new', 10), (2, 'a', 'new', 10), (3, 'b', 'new', 10);
CREATE VIEW marks AS SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'deciding:%' ORDER BY resource;
-- How many versions of a mark are written: each is a new place in the table.
CREATE FUNCTION mark_place(name text) RETURNS tid LANGUAGE sql AS 'SELECT ctid FROM lockfence.mark WHERE resource = name';

-- deciding on the transaction's snapshot: every check reads the newest mark, in every isolation level
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT lockfence.present('deciding:a', 11);
UPDATE item SET note = 'stale', token = 10 WHERE id = 1;
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE item SET note = 'advanced', token = 11 WHERE id = 1;
SELECT lockfence.present('deciding:a', 10);
ROLLBACK;

-- inherited token: an UPDATE that omits the column, and through a view that hides it
CREATE VIEW hiding AS SELECT id, note FROM item;
UPDATE hiding SET note = 'inherited' WHERE id = 1;
DELETE FROM hiding WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
CREATE VIEW showing AS SELECT id, note, token AS grant_no FROM item;
UPDATE showing SET note = 'stale', grant_no = 9 WHERE id = 1;
UPDATE showing SET note = 'column', grant_no = 10 WHERE id = 1;
BEGIN;
SELECT lockfence.present(10);
UPDATE hiding SET note = 'presented' WHERE id = 1;
COMMIT;
SELECT * FROM item WHERE id = 1;

-- inherited token: in a foreign-key action on a fenced table
CREATE TABLE owner (id integer PRIMARY KEY);
CREATE TABLE deed (id integer PRIMARY KEY, grp text NOT NULL DEFAULT 'deed',
	cascades integer REFERENCES owner ON UPDATE CASCADE ON DELETE CASCADE,
	nulls integer REFERENCES owner ON DELETE SET NULL, defaults integer DEFAULT 1 REFERENCES owner ON DELETE SET DEFAULT);
INSERT INTO owner VALUES (1), (2), (3), (4);
SELECT lockfence.attach('deed', 'deciding:{grp}', 'token');
INSERT INTO deed (id, cascades, token) VALUES (1, 2, 10);
INSERT INTO deed (id, nulls, defaults, token) VALUES (2, 3, 4, 10);
UPDATE owner SET id = 20 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
DELETE FROM owner WHERE id = 2;
DELETE FROM owner WHERE id = 3;
DELETE FROM owner WHERE id = 4;
BEGIN;
SELECT lockfence.present('deciding:deed', 9);
ROLLBACK;
BEGIN;
SELECT lockfence.present('deciding:deed', 11);
UPDATE owner SET id = 20 WHERE id = 2;
DELETE FROM owner WHERE id IN (3, 4);
SELECT * FROM deed ORDER BY id;
DELETE FROM owner WHERE id = 20;
SELECT * FROM deed ORDER BY id;
ROLLBACK;

-- tg_updatedcols: a column that the SET list names counts as shown, whatever is put there ...
UPDATE item SET token = token WHERE id = 3;
-- ... and what an earlier trigger puts there does not.
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.token := 10;
	RETURN NEW;
END
$$;
CREATE TRIGGER a_stamp BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION stamp();
UPDATE item SET note = 'stamped' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER a_stamp ON item;
-- accept => 'presented': the column is no proof at all, as for an ORM that writes every column back.
CREATE TABLE mapped (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('mapped', 'deciding:mapped', 'token', accept => 'presented');
INSERT INTO mapped VALUES (1, 'new', 10);
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present(10);
INSERT INTO mapped VALUES (1, 'new', 3), (2, 'new', NULL);
SELECT * FROM mapped ORDER BY id;
COMMIT;
UPDATE mapped SET note = 'orm', token = 10;
\echo :LAST_ERROR_SQLSTATE
UPDATE mapped SET note = 'orm', token = 99;
BEGIN;
SELECT lockfence.present('deciding:mapped', 11);
UPDATE mapped SET note = 'orm', token = 10;
UPDATE mapped SET note = 'orm', token = NULL WHERE id = 2;
SELECT * FROM mapped ORDER BY id;
COMMIT;
-- ... and on a row fence.
CREATE TABLE mapped_row (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('mapped_row', accept => 'presented');
INSERT INTO mapped_row VALUES (1, 'new', 10);
SELECT * FROM mapped_row;
UPDATE mapped_row SET note = 'orm', fence = 11;
BEGIN;
SELECT lockfence.present(12);
UPDATE mapped_row SET note = 'orm', fence = NULL;
SELECT * FROM mapped_row;
COMMIT;

-- A write that meets no row presents no token on a template fence ...
UPDATE item SET note = 'none', token = 1 WHERE id = 99;
-- ... which is what the guarded functions are for.
SELECT lockfence.guarded_update('item', '{"id": 99, "grp": "a"}', '{"note": "none"}', 1);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('item', '{"id": 99, "grp": "a"}', '{"note": "none"}', 10);

-- Equal tokens write nothing: a hundred thousand rows, and the mark is where it was.
CREATE TABLE bulk (id integer, note text);
SELECT lockfence.attach('bulk', 'deciding:bulk', 'token');
INSERT INTO bulk SELECT n, 'new', 10 FROM generate_series(1, 100000) n;
CREATE TABLE place AS SELECT mark_place('deciding:bulk') AS before;
BEGIN;
UPDATE bulk SET note = 'set', token = 10;
SELECT lockfence.present('deciding:bulk', 10);
SELECT mark_place('deciding:bulk') = before AS unchanged FROM place;
-- ... nor does it lock the mark's tuple.
SELECT xmax FROM lockfence.mark WHERE resource = 'deciding:bulk';
COMMIT;
UPDATE bulk SET note = 'set', token = 11;
SELECT mark_place('deciding:bulk') = before AS unchanged FROM place;
SELECT count(*) FROM bulk WHERE token = 11;
-- One new version an advance, however many rows the statement has.
SELECT count(DISTINCT xmin::text) FROM bulk;

-- one statement that carries two tokens for the same resource
INSERT INTO item VALUES (10, 'c', 'new', 30), (11, 'c', 'new', 20);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO item VALUES (10, 'c', 'new', 20), (11, 'c', 'new', 30);
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET token = 9 + id WHERE id IN (1, 2);
\echo :LAST_ERROR_SQLSTATE
-- ... for two resources it may.
INSERT INTO item VALUES (10, 'c', 'new', 30), (11, 'd', 'new', 20);
SELECT * FROM marks WHERE resource IN ('deciding:c', 'deciding:d');
-- ... and so do two statements of a transaction; a newer grant is presented.
BEGIN;
UPDATE item SET note = 'one', token = 30 WHERE id = 10;
UPDATE item SET note = 'two', token = 31 WHERE id = 10;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
UPDATE item SET note = 'one', token = 30 WHERE id = 10;
SELECT lockfence.present('deciding:c', 31);
UPDATE item SET note = 'two', token = 31 WHERE id = 10;
SELECT * FROM lockfence.presented();
COMMIT;

-- A higher token advances at once, whether or not a row is written.
BEGIN;
SELECT lockfence.present('deciding:e', 40);
COMMIT;
INSERT INTO item VALUES (12, 'e', 'stale', 39);
-- ... but not where the write itself fails, for its transaction does.
INSERT INTO item VALUES (1, 'e', 'duplicate', 50);
INSERT INTO item VALUES (12, NULL, 'null', 50);
SELECT * FROM marks WHERE resource = 'deciding:e';

-- Refusal is an error, in a function too, and never zero rows.
DO $$
DECLARE
	rows bigint;
BEGIN
	UPDATE test_deciding.item SET note = 'stale', token = 1 WHERE id = 1;
	GET DIAGNOSTICS rows = ROW_COUNT;
	RAISE INFO 'rows: %', rows;
EXCEPTION WHEN SQLSTATE 'LF001' THEN
	RAISE INFO 'refused: %', SQLSTATE;
END
$$;

DROP SCHEMA test_deciding CASCADE;
