-- DDL by which resources get other names: it goes on, with a warning.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_retype;
SET search_path = test_retype;
CREATE TYPE region AS ENUM ('north', 'south');
CREATE DOMAIN region_domain AS region;
CREATE TYPE place AS (region region, number integer);
CREATE DOMAIN amount AS numeric(6,2);

-- ALTER TYPE ... RENAME VALUE: where a template names a column of the type, of a domain, array or row of it
CREATE TABLE plain (id integer, region region);
CREATE TABLE with_enum (id integer, region region, note text);
CREATE TABLE with_domain (region region_domain);
CREATE TABLE with_array (region region[]);
CREATE TABLE with_row (place place);
CREATE TABLE not_named (id integer, region region, place place);
CREATE TABLE row_fence (id integer, region region);
SELECT lockfence.attach('with_enum', 'retype:{region}', token_column => 'fence');
SELECT lockfence.attach('with_domain', 'retype:{region}');
SELECT lockfence.attach('with_array', 'retype:{region}');
SELECT lockfence.attach('with_row', 'retype:{place}');
SELECT lockfence.attach('not_named', 'retype:{{region}}{id}');
SELECT lockfence.attach('row_fence');
INSERT INTO with_enum VALUES (1, 'north', 'x', 43);
-- (each by itself: the order of the catalog is none)
BEGIN;
DROP TABLE with_enum, with_row, with_array;
ALTER TYPE region RENAME VALUE 'south' TO 'west';
ROLLBACK;
BEGIN;
DROP TABLE with_enum, with_row, with_domain;
ALTER TYPE region RENAME VALUE 'south' TO 'west';
ROLLBACK;
DROP TABLE with_domain, with_array;
-- what the warning is about, and what it advises
BEGIN;
DROP TABLE with_row;
ALTER TYPE region RENAME VALUE 'north' TO 'east';
SELECT lockfence.resource_of('with_enum', w) FROM with_enum w;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'retype:%';
SELECT lockfence.reconcile('test_retype.with_enum');
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'retype:%' ORDER BY 1;
ROLLBACK;
BEGIN;
DROP TABLE with_enum;
ALTER TYPE region RENAME VALUE 'north' TO 'east';
ROLLBACK;
-- a new attribute of the row, and a column of a table whose row is a column
BEGIN;
ALTER TYPE place ADD ATTRIBUTE note text;
ROLLBACK;
CREATE TABLE inner_row (a integer);
CREATE TABLE outer_row (r inner_row);
SELECT lockfence.attach('outer_row', 'retype:{r}');
ALTER TABLE inner_row ADD COLUMN b integer;
ALTER TABLE inner_row ALTER COLUMN b SET DEFAULT 1;
-- nothing to tell
ALTER TYPE region ADD VALUE 'centre';
ALTER TYPE region RENAME TO region2;
ALTER TYPE region2 RENAME TO region;
ALTER TABLE plain ALTER COLUMN region TYPE text;

-- ALTER TABLE ... ALTER COLUMN ... TYPE
CREATE TABLE item (a numeric(6,2), b integer, c text, "d{" timestamp, e amount, f region, g char(5));
SELECT lockfence.attach('item', 'retype-item:{a}/{b}/{c}/{e}/{f}/{g}');
CREATE FUNCTION alter_column(change text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'ALTER TABLE item ALTER COLUMN ' || change;
	RETURN 'done';
END
$$;
ALTER TABLE item ALTER COLUMN a TYPE integer;
-- each of these changes the text,
SELECT alter_column('a TYPE numeric(6,1)');
SELECT alter_column('b TYPE numeric(6,1)');
SELECT alter_column('b TYPE text USING b::text || c');
SELECT alter_column('c TYPE char(10)');
SELECT alter_column('e TYPE numeric(6,1)');
SELECT alter_column('g TYPE text');
-- some only with others in one command,
ALTER TABLE item ADD COLUMN h integer, ALTER COLUMN c TYPE timestamp USING NULL, ALTER COLUMN h SET DEFAULT 1;
-- and none of these does.
SELECT alter_column('a TYPE numeric(12,1)');
SELECT alter_column('a TYPE numeric');
SELECT alter_column('a TYPE text');
SELECT alter_column('e TYPE numeric(6,1)');
SELECT alter_column('f TYPE text');
SELECT alter_column('"d{" TYPE date');
CREATE TABLE ints (a integer, b varchar(10), c uuid);
SELECT lockfence.attach('ints', 'retype-ints:{a}/{b}/{c}');
ALTER TABLE ints ALTER COLUMN a TYPE bigint, ALTER COLUMN b TYPE text, ALTER COLUMN c TYPE text;
ALTER TABLE ints ALTER COLUMN a TYPE numeric(20,0);
ALTER TABLE ints ALTER COLUMN a TYPE integer;
-- Partitions are the topmost table's to tell; a table that inherits tells itself.
CREATE TABLE part (k integer, n numeric(6,2)) PARTITION BY LIST (k);
CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1);
SELECT lockfence.attach('part', 'retype-part:{n}');
ALTER TABLE part ALTER COLUMN n TYPE integer;
CREATE TABLE parent (n numeric(6,2));
CREATE TABLE child () INHERITS (parent);
SELECT lockfence.attach('child', 'retype-child:{n}');
ALTER TABLE parent ALTER COLUMN n TYPE integer;

-- Commands that fail do so as they would; those that are about something else are left alone.
ALTER TABLE nothing ALTER COLUMN a TYPE integer;
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE IF EXISTS nothing ALTER COLUMN a TYPE integer;
ALTER TABLE item ALTER COLUMN nothing TYPE integer;
\echo :LAST_ERROR_SQLSTATE
-- 19 shows where
\set VERBOSITY sqlstate
ALTER TABLE item ALTER COLUMN f TYPE nothing;
\set VERBOSITY default
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE no_schema.nothing ALTER COLUMN a TYPE integer;
\echo :LAST_ERROR_SQLSTATE
ALTER TYPE nothing RENAME VALUE 'a' TO 'b';
\echo :LAST_ERROR_SQLSTATE
SET client_min_messages = error;
ALTER TYPE region RENAME VALUE 'nothing' TO 'b';
SET client_min_messages = warning;
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE item ALTER COLUMN f SET STATISTICS 10;
-- A column that only a child has is not the parent's to change.
CREATE TABLE elder (id integer);
CREATE TABLE heir (region text) INHERITS (elder);
SELECT lockfence.attach('heir', 'retype-heir:{region}');
ALTER TABLE elder ALTER COLUMN region TYPE bytea USING NULL;
\echo :LAST_ERROR_SQLSTATE
CREATE VIEW v AS SELECT 1 AS a;
ALTER TABLE v ALTER COLUMN a SET DEFAULT 2;
SELECT lockfence.watch_types();
\echo :LAST_ERROR_SQLSTATE
-- A role without rights on the schema is told nothing but the error.
CREATE ROLE regress_retype;
SET ROLE regress_retype;
ALTER TABLE test_retype.item ALTER COLUMN g TYPE integer USING 1;
\echo :LAST_ERROR_SQLSTATE
CREATE TEMPORARY TABLE mine (a integer);
ALTER TABLE mine ALTER COLUMN a TYPE text;
DROP TABLE mine;
RESET ROLE;
DROP ROLE regress_retype;
-- Also under the replica role; the member of the extension cannot be dropped alone.
SET session_replication_role = replica;
ALTER TABLE ints ALTER COLUMN a TYPE text USING 'x' || a;
RESET session_replication_role;
DROP EVENT TRIGGER lockfence_watch_types;
\echo :LAST_ERROR_SQLSTATE

-- verify() finds it disabled.
BEGIN;
ALTER EVENT TRIGGER lockfence_watch_types DISABLE;
ALTER TABLE ints ALTER COLUMN a TYPE text USING 'y' || a;
SELECT severity, problem, remedy, advice FROM lockfence.verify() WHERE code = 'ddl_guard';
SELECT remedy FROM lockfence.verify() WHERE code = 'ddl_guard' \gexec
SELECT evtenabled FROM pg_event_trigger WHERE evtname = 'lockfence_watch_types';
ROLLBACK;

-- The name of an object is a text that changes with it.
CREATE TABLE reg (a regclass, b oid);
SELECT lockfence.attach('reg', 'retype-reg:{a}');
DROP SCHEMA test_retype CASCADE;
