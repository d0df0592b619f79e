-- Which tables are fenced, and what their rows say: guards are known by their function, and rows are read as they
-- are stored, whatever their table's owner has named or defined.
\set SHOW_CONTEXT never
\set VERBOSITY terse
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA test_reading;
SET search_path = test_reading;
CREATE ROLE regress_lf_reader;
GRANT USAGE ON SCHEMA test_reading TO regress_lf_reader;
CREATE FUNCTION found(VARIADIC codes text[]) RETURNS TABLE (target regclass, severity text, code text) LANGUAGE sql AS $$
	SELECT v.target, v.severity, v.code
	FROM lockfence.verify() v JOIN pg_class c ON c.oid = v.target AND c.relnamespace = 'test_reading'::regnamespace
	WHERE v.code = ANY (codes) ORDER BY 1, 3
$$;
CREATE FUNCTION marks_of(prefix text) RETURNS TABLE (resource text, token bigint) LANGUAGE sql AS $$
	SELECT m.resource, m.token FROM lockfence.mark m WHERE starts_with(m.resource, prefix) ORDER BY m.resource COLLATE "C"
$$;
-- What was written without the fence; its marks are missing.
CREATE PROCEDURE load(statement text) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL lockfence.bypass = on;
	EXECUTE statement;
	SET LOCAL lockfence.bypass = off;
END
$$;

-- Columns by any name that a query might use as an alias, the token column among them.
CREATE TABLE alias (t int, s text, r text, m bigint, target int, resource text, token text);
SELECT lockfence.attach('alias', 'alias:{t}/{s}', 'm');
CALL load($$INSERT INTO alias VALUES (1, 'a', 'r', 10, 0, 'x', 'y')$$);
SELECT * FROM found('marks_missing');
SELECT lockfence.reconcile('alias');
SELECT * FROM marks_of('alias:');
SELECT * FROM found('marks_missing');
SELECT lockfence.resource_of('alias', alias.*) FROM alias;

-- A guard by another name is a guard: of the table, and of a partition.
CREATE TABLE renamed (id int PRIMARY KEY, note text);
SELECT lockfence.attach('renamed', 'renamed:{id}', 'fence');
ALTER TRIGGER "~lockfence_row" ON renamed RENAME TO zz_row;
ALTER TRIGGER "~lockfence_truncate" ON renamed RENAME TO zz_truncate;
CALL load('INSERT INTO renamed VALUES (1, NULL, 10)');
SELECT kind, resource, token_column, triggers FROM lockfence.fences WHERE target = 'renamed'::regclass;
SELECT lockfence.resource_of('renamed', r.*) FROM renamed r;
SELECT * FROM found('marks_missing', 'guard_renamed', 'guard_missing');
SELECT lockfence.reconcile('renamed');
SELECT * FROM marks_of('renamed:');
SELECT lockfence.guarded_update('renamed', '{"id": 1}', '{"note": "stale"}', 9);
SELECT lockfence.guarded_update('renamed', '{"id": 1}', '{"note": "new"}', 11);
SELECT lockfence.attach('renamed');
SELECT lockfence.detach('renamed');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'renamed'::regclass;
CREATE TABLE part (k int, fence bigint) PARTITION BY LIST (k);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
SELECT lockfence.attach('part', 'part:{k}', 'fence');
ALTER TRIGGER "~lockfence_row" ON part RENAME TO zz_row;
CALL load('INSERT INTO part VALUES (1, 10)');
SELECT * FROM found('marks_missing');
SELECT lockfence.detach('part_1');
SELECT lockfence.reconcile('part'), lockfence.detach('part');
SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('part'::regclass, 'part_1'::regclass);

-- Another trigger by the name of a guard is none, whatever its arguments say.
CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN coalesce(new, old); END';
CREATE TABLE impostor (id int PRIMARY KEY, fence bigint);
INSERT INTO impostor VALUES (1, 10);
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON impostor FOR EACH ROW
EXECUTE FUNCTION pass('resource=impostor:{id}', 'token_column=fence');
ALTER TABLE impostor ENABLE ALWAYS TRIGGER "~lockfence_row";
CREATE VIEW seen AS SELECT 1 AS id, 10::bigint AS fence;
CREATE TRIGGER "~lockfence_row" INSTEAD OF INSERT ON seen FOR EACH ROW EXECUTE FUNCTION pass('resource=seen:{id}', 'token_column=fence');
SELECT count(*) FROM lockfence.fences WHERE target IN ('impostor'::regclass, 'seen'::regclass);
SELECT lockfence.resource_of('impostor', i.*) FROM impostor i;
SELECT lockfence.resource_of('seen', s.*) FROM seen s;
SELECT lockfence.guarded_update('impostor', '{"id": 1}', '{"fence": 1}', 11);
SELECT lockfence.reconcile('impostor');
SELECT lockfence.reconcile('seen');
SELECT lockfence.detach('impostor');
\set VERBOSITY default
SELECT lockfence.attach('impostor', 'impostor:{id}', 'fence');
\set VERBOSITY terse
SELECT * FROM found('guard_impostor', 'guard_altered', 'marks_missing', 'guard_missing');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'impostor'::regclass;
-- ... nor is a guard's function in a trigger that does not fire for every write
CREATE TABLE partly (id int PRIMARY KEY, fence bigint);
CREATE TRIGGER "~lockfence_row" BEFORE DELETE ON partly FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('resource=partly:{id}', 'token_column=fence');
ALTER TABLE partly ENABLE ALWAYS TRIGGER "~lockfence_row";
INSERT INTO partly VALUES (1, 10);
SELECT lockfence.guarded_update('partly', '{"id": 1}', '{"fence": 1}', 11);
SELECT * FROM found('guard_altered');
DROP TABLE partly;
-- ... or on a view
CREATE TRIGGER one INSTEAD OF INSERT ON seen FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('resource=seen:{id}', 'token_column=fence');
SELECT lockfence.resource_of('seen', s.*) FROM seen s;
SELECT lockfence.reconcile('seen');
SELECT * FROM found('guard_altered', 'marks_missing');

-- Arguments that declare no fence leave the view as it is for the others.
CREATE TABLE broken (id int);
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON broken FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('resource=broken:{');
CREATE TRIGGER b BEFORE INSERT ON broken FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('validator=no.such(', 'resource=x');
CREATE TRIGGER c BEFORE INSERT ON broken FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('validator=a.b.c.d(text)', 'resource=x');
CREATE TRIGGER d BEFORE INSERT ON broken FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('validator=f(no.such)', 'resource=x');
CREATE TRIGGER e BEFORE INSERT ON broken FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('validator=99999999999999', 'resource=x');
CREATE TRIGGER f BEFORE INSERT ON broken FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('advisory_since=soon', 'resource=x');
SELECT kind, resource FROM lockfence.fences WHERE target = 'broken'::regclass;
SELECT lockfence.reconcile('broken');
SELECT DISTINCT severity, code FROM lockfence.verify('broken') WHERE target = 'broken'::regclass ORDER BY 2;
DROP TABLE broken;

-- A token above the mark that there is: written past the fence, or the mark came from elsewhere.
CREATE TABLE ahead (id int, fence bigint);
SELECT lockfence.attach('ahead', 'ahead:{id}', 'fence');
INSERT INTO ahead VALUES (1, 20), (2, 30);
SELECT * FROM found('marks_behind', 'marks_missing');
CALL load('UPDATE ahead SET fence = 40 WHERE id = 1');
SELECT * FROM found('marks_behind', 'marks_missing');
SELECT lockfence.reconcile('ahead');
SELECT * FROM found('marks_behind', 'marks_missing');
SELECT * FROM marks_of('ahead:');
-- ... but for tokens that the lowest one in force is above
CALL load('UPDATE ahead SET fence = 50 WHERE id = 1');
BEGIN;
SELECT count(lockfence._set_state('minimum', 50));
SELECT * FROM found('marks_behind', 'marks_missing');
ROLLBACK;

-- Rows that no resource is named by are passed over, and so are those without a token.
CREATE TABLE nameless (name text, fence bigint);
SELECT lockfence.attach('nameless', '{name}', 'fence');
CALL load($$INSERT INTO nameless VALUES (NULL, 10), ('', 10), (repeat('n', 1025), 10), ('reading!', NULL), ('reading!', 0), ('reading!', -1), ('reading!', 10)$$);
SELECT lockfence.reconcile('nameless');
SELECT * FROM marks_of('reading!');

-- ... and those whose names would be longer than memory allows, by which an owner could keep verify() from all
CREATE TABLE immense (a text, fence bigint);
SELECT lockfence.attach('immense', repeat('{a}', 340), 'fence');
CALL load($$INSERT INTO immense VALUES (repeat('i', 3300000), 10)$$);
SELECT * FROM found('marks_missing');
SELECT lockfence.reconcile('immense');

-- Values are printed as the fence prints them, not by what their types cast to.
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE TYPE place AS (x int, at date);
CREATE DOMAIN short AS text CHECK (length(value) < 10);
CREATE FUNCTION colour_text(colour) RETURNS text LANGUAGE sql AS $$SELECT 'cast'$$;
CREATE FUNCTION place_text(place) RETURNS text LANGUAGE sql AS $$SELECT 'cast'$$;
CREATE CAST (colour AS text) WITH FUNCTION colour_text(colour);
CREATE CAST (place AS text) WITH FUNCTION place_text(place);
CREATE TABLE typed (c colour, p place, s short, a int[], d date, r int4range, fence lockfence.fence_token);
SELECT lockfence.attach('typed', 'typed:{c} {p} {s} {a} {d} {r}', 'fence');
CALL load($$INSERT INTO typed VALUES ('red', '(1,2026-12-01)', 'short', '{1,2}', '2026-12-01', '[1,3)', 10)$$);
SET DateStyle = 'German';
SELECT lockfence.reconcile('typed');
SELECT * FROM marks_of('typed:');
RESET DateStyle;

-- Partitions whose columns have other numbers, and children, are read through their root.
CREATE TABLE root (k int, n int, fence bigint) PARTITION BY LIST (k);
CREATE TABLE root_1 PARTITION OF root FOR VALUES IN (1);
CREATE TABLE root_2 (fence bigint, gone int, n int, k int);
ALTER TABLE root_2 DROP COLUMN gone;
ALTER TABLE root ATTACH PARTITION root_2 FOR VALUES IN (2);
SELECT lockfence.attach('root', 'root:{k}/{n}', 'fence');
CALL load('INSERT INTO root VALUES (1, 1, 10), (2, 1, 20), (2, 1, 21)');
SELECT lockfence.reconcile('root_2'), lockfence.reconcile('root');
SELECT * FROM marks_of('root:');
CREATE TABLE parent (n int, fence bigint);
CREATE TABLE child (more text) INHERITS (parent);
SELECT lockfence.attach('parent', 'parent:{n}', 'fence');
CALL load('INSERT INTO parent VALUES (1, 10)');
CALL load('INSERT INTO child VALUES (2, 20)');
SELECT lockfence.reconcile('parent');
SELECT * FROM marks_of('parent:');

-- Row-level security that hides rows is said, and so is what the caller may not read.
CREATE TABLE hidden (id int, fence bigint);
SELECT lockfence.attach('hidden', 'hidden:{id}', 'fence');
CALL load('INSERT INTO hidden VALUES (1, 10)');
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE POLICY none ON hidden USING (false);
GRANT EXECUTE ON FUNCTION lockfence.reconcile(regclass), lockfence._raise_mark(text, lockfence.fence_token),
	lockfence._reconciled(regclass, bigint) TO regress_lf_reader;
GRANT SELECT ON lockfence.mark, lockfence.state TO regress_lf_reader;
SET ROLE regress_lf_reader;
\set VERBOSITY default
SELECT lockfence.reconcile('hidden');
\set VERBOSITY terse
SELECT v.severity, v.code FROM lockfence.verify('hidden') v WHERE v.target = 'hidden'::regclass;
RESET ROLE;
GRANT SELECT ON hidden TO regress_lf_reader;
SET ROLE regress_lf_reader;
\set VERBOSITY default
SELECT lockfence.reconcile('hidden');
\set VERBOSITY terse
SELECT v.severity, v.code FROM lockfence.verify('hidden') v WHERE v.target = 'hidden'::regclass;
RESET ROLE;
SELECT * FROM marks_of('hidden:');
ALTER ROLE regress_lf_reader BYPASSRLS;
SET ROLE regress_lf_reader;
SELECT v.severity, v.code FROM lockfence.verify('hidden') v WHERE v.target = 'hidden'::regclass;
SELECT lockfence.reconcile('hidden');
RESET ROLE;
SELECT * FROM marks_of('hidden:');

-- What is no table is not read.
SELECT lockfence._rows_above_marks('seen', 'seen:{id}', 'fence', NULL);
SELECT lockfence._rows_above_marks('pg_class_oid_index', '{oid}', 'oid', NULL);
SELECT lockfence._rows_above_marks(0, 'x', 'y', NULL);
SELECT lockfence._rows_above_marks('alias', 'alias:{t}', 's', NULL);
SELECT lockfence._rows_above_marks('alias', 'alias:{none}', 'm', NULL);

SET client_min_messages = error;
REVOKE SELECT ON lockfence.mark, lockfence.state FROM regress_lf_reader;
REVOKE EXECUTE ON FUNCTION lockfence.reconcile(regclass), lockfence._raise_mark(text, lockfence.fence_token),
	lockfence._reconciled(regclass, bigint) FROM regress_lf_reader;
DROP SCHEMA test_reading CASCADE;
DROP ROLE regress_lf_reader;
