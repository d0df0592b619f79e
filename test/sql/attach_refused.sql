-- What attach() refuses, each with its reason.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_refused;
SET search_path = test_refused;
CREATE TABLE plain (id integer PRIMARY KEY, region text, wide bigint, token bigint);
CREATE FUNCTION bad_validator(text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION bad_result(text, bigint) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION bad_set(text, bigint) RETURNS SETOF boolean LANGUAGE sql AS 'SELECT true';

-- rules bypass triggers
CREATE TABLE ruled (id integer);
CREATE RULE instead AS ON UPDATE TO ruled DO INSTEAD NOTHING;
SELECT lockfence.attach('ruled', 'refused:x');
\echo :LAST_ERROR_SQLSTATE
-- ... also of a child.
CREATE TABLE ruled_parent (id integer);
CREATE TABLE ruled_child () INHERITS (ruled_parent);
CREATE RULE also AS ON INSERT TO ruled_child DO ALSO NOTHING;
SELECT lockfence.attach('ruled_parent');

-- foreign tables, and partitioned tables with a foreign leaf
CREATE FOREIGN DATA WRAPPER test_refused_wrapper;
CREATE SERVER test_refused_server FOREIGN DATA WRAPPER test_refused_wrapper;
CREATE FOREIGN TABLE elsewhere (id integer) SERVER test_refused_server;
SELECT lockfence.attach('elsewhere', 'refused:x');
\echo :LAST_ERROR_SQLSTATE
CREATE TABLE partly (id integer) PARTITION BY LIST (id);
CREATE TABLE partly_1 PARTITION OF partly FOR VALUES IN (1);
CREATE FOREIGN TABLE partly_2 PARTITION OF partly FOR VALUES IN (2) SERVER test_refused_server;
SELECT lockfence.attach('partly', 'refused:{id}');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'partly_1'::regclass;

-- what holds no rows, or not its own
CREATE VIEW shown AS SELECT * FROM plain;
CREATE MATERIALIZED VIEW kept AS SELECT * FROM plain;
CREATE SEQUENCE counted;
CREATE TYPE pair AS (a integer, b integer);
SELECT lockfence.attach('shown', 'refused:x');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('kept', 'refused:x');
SELECT lockfence.attach('counted', 'refused:x');
SELECT lockfence.attach('pair', 'refused:x');
SELECT lockfence.attach('plain_pkey', 'refused:x');

-- catalogs, and lockfence's own tables
SELECT lockfence.attach('pg_catalog.pg_class', 'refused:x');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('information_schema.sql_features', 'refused:x');
SELECT lockfence.attach('lockfence.mark', 'refused:x');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('lockfence.state', 'refused:x');
SELECT lockfence.attach('lockfence.admin_log', 'refused:x');

-- unlogged: rows with marks that a crash empties; a named fence keeps its marks elsewhere
CREATE UNLOGGED TABLE volatile (id integer);
SELECT lockfence.attach('volatile');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('volatile', 'refused:{id}');
-- ... unless that is unlogged itself.
BEGIN;
ALTER EVENT TRIGGER lockfence_after_ddl DISABLE;
ALTER TABLE lockfence.mark SET UNLOGGED;
SELECT lockfence.attach('plain', 'refused:{id}');
ROLLBACK;

-- generated columns are not computed yet when a guard fires
CREATE TABLE computed (id integer, twice integer GENERATED ALWAYS AS (id * 2) STORED,
	made bigint GENERATED ALWAYS AS (id) STORED);
SELECT lockfence.attach('computed', 'refused:{twice}');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('computed', token_column => 'made');
\echo :LAST_ERROR_SQLSTATE

-- token columns that present a token which no holder has, or cannot hold one
CREATE TABLE columns (id integer, numbered bigint GENERATED ALWAYS AS IDENTITY, preset bigint DEFAULT 7,
	narrow integer, words text, price numeric);
SELECT lockfence.attach('columns', token_column => 'numbered');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('columns', token_column => 'preset');
SELECT lockfence.attach('columns', token_column => 'narrow');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('columns', token_column => 'words');
SELECT lockfence.attach('columns', token_column => 'price');
SELECT lockfence.attach('columns', token_column => 'ctid');
SELECT lockfence.attach('plain', 'refused:{token}', 'token');
-- ... of a partition or child too, which may have a default of its own
CREATE TABLE defaults (id integer, token bigint) PARTITION BY LIST (id);
CREATE TABLE defaults_1 PARTITION OF defaults FOR VALUES IN (1);
ALTER TABLE defaults_1 ALTER token SET DEFAULT 7;
SELECT lockfence.attach('defaults', 'refused:defaults', 'token');
\echo :LAST_ERROR_SQLSTATE

-- placeholders: unknown columns, system columns, braces out of place, names of no length or too much
SELECT lockfence.attach('plain', 'refused:{nothing}');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('plain', 'refused:{ID}');
SELECT lockfence.attach('plain', 'refused:{ctid}');
SELECT lockfence.attach('plain', 'refused:{id');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('plain', 'refused:id}');
SELECT lockfence.attach('plain', 'refused:{}');
SELECT lockfence.attach('plain', 'refused:{id{region}}');
SELECT lockfence.attach('plain', '{');
SELECT lockfence.attach('plain', '}');
SELECT lockfence.attach('plain', '{{{id}');
SELECT lockfence.detach('plain');
SELECT lockfence.attach('plain', '{id}}');
SELECT lockfence.attach('plain', '');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('plain', repeat('x', 1025));

-- words
SELECT lockfence.attach('plain', accept => 'all');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('plain', enforcement => 'Fenced');
SELECT lockfence.attach('plain', missing => '');
SELECT lockfence.attach('plain', repeat => NULL);
SELECT lockfence.attach(NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('nowhere');
SELECT lockfence.attach('plain', 'refused:x', missing => 'allow', repeat => 'reject');
\echo :LAST_ERROR_SQLSTATE

-- validators
SELECT lockfence.attach('plain', 'refused:x', validator => 'bad_validator(text)');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('plain', 'refused:x', validator => 'bad_result(text, bigint)');
SELECT lockfence.attach('plain', 'refused:x', validator => 'bad_set(text, bigint)');
SELECT lockfence.attach('plain', 'refused:x', validator => 'nothing(text, bigint)');
SELECT lockfence.attach('plain', validator => 'bad_result(text, bigint)');

-- a statement on a parent does not fire a child's statement trigger
CREATE TABLE parent (id integer) PARTITION BY LIST (id);
CREATE TABLE leaf PARTITION OF parent FOR VALUES IN (1);
SELECT lockfence.attach('leaf', 'refused:x');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('leaf', 'refused:{id}');

-- already fenced, as itself or as a child
SELECT lockfence.attach('parent', 'refused:x');
\echo :LAST_ERROR_SQLSTATE

-- Nothing of it fenced a table or added a column.
SELECT target FROM lockfence.fences WHERE target::text ~ '^(plain|columns|computed|ruled|partly)';
SELECT attrelid::regclass, attname FROM pg_attribute
WHERE attname = 'fence' AND attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'test_refused'::regnamespace);

-- Guards made by hand with settings that make no sense reject all writes.
CREATE TABLE hand (id integer, token text);
CREATE TRIGGER a BEFORE INSERT ON hand FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row();
INSERT INTO hand VALUES (1);
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER a ON hand;
CREATE TRIGGER a BEFORE INSERT ON hand FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('resource=x', 'missing=maybe');
INSERT INTO hand VALUES (1);
DROP TRIGGER a ON hand;
CREATE TRIGGER a BEFORE INSERT ON hand FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('resource=x', 'colour=red');
INSERT INTO hand VALUES (1);
DROP TRIGGER a ON hand;
CREATE TRIGGER a BEFORE INSERT ON hand FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('token_column=token');
INSERT INTO hand VALUES (1);
DROP TRIGGER a ON hand;
CREATE TRIGGER a AFTER INSERT ON hand FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('resource=x');
INSERT INTO hand VALUES (1);
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER a ON hand;
CREATE TRIGGER a BEFORE INSERT ON hand FOR EACH ROW EXECUTE FUNCTION lockfence.guard_statement('resource=x');
INSERT INTO hand VALUES (1);
DROP TRIGGER a ON hand;
CREATE TRIGGER a BEFORE INSERT ON hand FOR EACH STATEMENT EXECUTE FUNCTION lockfence.guard_row('resource=x');
INSERT INTO hand VALUES (1);
SELECT lockfence.guard_row();
SELECT count(*) FROM hand;

-- An error's context is the caller's, and nothing within attach().
CREATE FUNCTION context_of(target regclass, resource text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	context text;
BEGIN
	PERFORM lockfence.attach(target, resource);
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
	RETURN context;
END $$;
SELECT context_of('hand', 'x-{missing}');
SELECT context_of('hand', 'x-{') = context_of('pg_class', NULL) AS same;

DROP SCHEMA test_refused CASCADE;
DROP FOREIGN DATA WRAPPER test_refused_wrapper CASCADE;
