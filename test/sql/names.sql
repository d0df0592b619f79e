-- Names that no fence can make: administrators and clients are told, and verify() finds the marks.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_names;
SET search_path = test_names;
SET lockfence.unknown_resource = warning;
CREATE TABLE batch (batch_id integer PRIMARY KEY, site text);
CREATE TABLE ledger (id integer);
CREATE TABLE "odd, table" (id integer PRIMARY KEY, name text);
SELECT lockfence.attach('batch', 'names:{site}/b-{batch_id}');
SELECT lockfence.attach('ledger', 'names/{{all}}');
SELECT lockfence.attach('"odd, table"');
INSERT INTO "odd, table" VALUES (1, 'x', 5);

-- What a template can make, whatever the columns hold
SELECT name, lockfence._is_named(name) AS is_named FROM (VALUES
	('names:a/b-1'), ('names:/b-'), ('names:a/b-b-/b-1'), ('names:a/b-1 and more'),
	('names/{all}'), ('names/{{all}}'), ('names/all'), ('names/{all}x'),
	('names:a/b1'), ('names:ab-1'), ('name'), ('names:'), ('xnames:a/b-1'), ('Names:a/b-1')) AS n (name);
-- Doubled braces, adjoining placeholders, placeholders at both ends; every way to split
CREATE TABLE twin (a text, b text);
SELECT lockfence.attach('twin', '{a}{b}::names::{a}-{b}}}');
SELECT name, lockfence._is_named(name) AS is_named FROM (VALUES
	('::names::-}'), ('x::names::y-z}'), ('x::names::::names::-}'), ('x::names::y-z'), ('x::names:y-z}')) AS n (name);
DROP TABLE twin;

-- A first token for a name that no fence makes
SELECT lockfence.present('names:a/b1', 43);
SELECT lockfence.present('names:a/b1', 44);
SELECT lockfence.present('names:a/b-1', 43);
SELECT lockfence.present('names/{all}', 43);
SELECT lockfence.present('test_names."odd, table" (id)=(1)', 43);
-- once per transaction
BEGIN;
SELECT lockfence.present('names:first', 43);
SELECT lockfence.present('names:second', 43);
COMMIT;
-- a fence that is new is known at once
CREATE TABLE later (id integer PRIMARY KEY);
SELECT lockfence.attach('later', 'names-later:{id}');
SELECT lockfence.present('names-later:1', 1);
DROP TABLE later;
SET lockfence.unknown_resource = ignore;
SELECT lockfence.present('names:third', 43);
SET lockfence.unknown_resource = notice;
SELECT lockfence.present('names:fourth', 43);
SET client_min_messages = notice;
SELECT lockfence.present(E'names:fi\nfth', 43);
SET client_min_messages = warning;
SET lockfence.unknown_resource = 'error';
SHOW lockfence.unknown_resource;

-- Administrators are warned, and what they ask for is done.
SELECT lockfence.raise_mark('names:a/b2', 43, 'mistyped');
SELECT lockfence.reset_mark('names:a/b2', 42, 'mistyped');
SELECT lockfence.raise_mark('names:a/b-2', 43, 'right');
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'names:a/b%2' ORDER BY resource;
SET lockfence.unknown_resource = ignore;
SELECT lockfence.raise_mark('names:a/b2', 44, 'mistyped');
-- The name of a row is refused: its mark is in the row.
UPDATE "odd, table" SET name = 'y', fence = 4 WHERE id = 1;
SELECT lockfence.raise_mark('test_names."odd, table" (id)=(1)', 9, 'by name');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.reset_mark('test_names."odd, table" (id)=(1)', 9, 'by name');
SELECT lockfence.raise_mark('test_names."odd, table"', 9, 'by name');
SELECT lockfence.raise_mark('a row of test_names."odd, table"', 9, 'by name');
SELECT lockfence.is_current('test_names."odd, table" (id)=(1)', 9);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.is_current('a row of test_names."odd, table"', 9);
SELECT lockfence.is_current('test_names.nothing (id)=(1)', 9);
SELECT lockfence.raise_mark('test_names."odd, table" (id)=(1)', 9, NULL);
-- unless a fence makes that very name
CREATE TABLE anything (name text);
SELECT lockfence.attach('anything', '{name}');
SELECT lockfence.raise_mark('test_names."odd, table" (id)=(1)', 45, 'by name');
DROP TABLE anything;

-- verify() finds the marks, and shows some.
SELECT severity, code, problem, remedy, advice FROM lockfence.verify() WHERE code = 'mark_unnamed' AND problem ~ '^No fence can make the names of some marks, which therefore refuse no write to a table: (".*", ){2}".*", and others[.]$' = false;
SELECT count(*) FROM lockfence.verify() WHERE code = 'mark_unnamed';
-- A session that knew a fence sees that it is gone.
SELECT lockfence._is_named('names:a/b-1');
DROP TABLE batch;
SELECT lockfence._is_named('names:a/b-1');
-- A role that may not read the marks is told nothing of them.
CREATE ROLE regress_names;
SET ROLE regress_names;
SELECT count(*) FROM lockfence.verify() WHERE code = 'mark_unnamed';
RESET ROLE;
DROP ROLE regress_names;

-- Arguments that a stranger has chosen make no trouble: what makes no sense is taken as it stands.
CREATE FUNCTION strange() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE TRIGGER strange BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('resource={names', '', 'resource', 'x');
CREATE TRIGGER stranger BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('resource=}names{}');
CREATE TRIGGER nothing BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row();
SELECT name, lockfence._is_named(name) AS is_named FROM (VALUES ('{names'), ('}names'), ('}namesx'), ('names')) AS n (name);
-- a template that could take for ever to compare with a name
DROP TRIGGER strange ON ledger;
DO $$
BEGIN
	EXECUTE format('CREATE TRIGGER strange BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row(%L)',
		'resource=' || repeat('{a}x', 250) || 'z');
END
$$;
SELECT lockfence._is_named(repeat('x', 1024)), lockfence._is_named(repeat('x', 1023) || 'z');
DROP SCHEMA test_names CASCADE;
