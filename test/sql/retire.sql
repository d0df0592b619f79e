-- retire(): DROP EXTENSION takes nothing with it that is not the extension's.  In a database of its own: it concerns all.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SELECT current_database() AS back \gset
CREATE DATABASE regression_retire;
\c regression_retire
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET lockfence.unknown_resource = ignore;
CREATE EXTENSION lockfence_lease CASCADE;
CREATE ROLE regress_retire_owner;
CREATE SCHEMA owned AUTHORIZATION regress_retire_owner;
GRANT EXECUTE ON FUNCTION lockfence.guard_row(), lockfence.guard_statement(), lockfence.guard_truncate() TO regress_retire_owner;

CREATE TABLE plain (id int PRIMARY KEY, note text);
SELECT lockfence.attach('plain');
INSERT INTO plain VALUES (1, 'kept', 42);
CREATE TABLE job (id int PRIMARY KEY);
SELECT lockfence.attach('job', 'jobs');
CREATE TABLE part (id int, "a key" int, PRIMARY KEY (id, "a key")) PARTITION BY LIST ("a key");
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
SELECT lockfence.attach('part', 'part:{a key}', 'To "ken"');
CREATE INDEX ON part ("To ""ken""");
INSERT INTO part VALUES (1, 1, 43);
CREATE TABLE parent (id int);
CREATE TABLE child () INHERITS (parent);
SELECT lockfence.attach('parent', 'parent:{id}', 'token');
CREATE TABLE lock_table (name text PRIMARY KEY, owner text);
SELECT lockfence.issue_from('lock_table', 'lock:{name}', '{owner}', '{owner}');
CREATE TABLE unfenced (token lockfence.fence_token UNIQUE);
INSERT INTO unfenced VALUES (44);

-- what an owner has defined is not evaluated with a superuser's rights
SET ROLE regress_retire_owner;
CREATE TABLE owned.checked (id int PRIMARY KEY);
SELECT lockfence.attach('owned.checked');
INSERT INTO owned.checked VALUES (1, 1);
CREATE FUNCTION owned.trap(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
$$BEGIN RAISE WARNING 'evaluated by %', current_user; RETURN true; END$$;
ALTER TABLE owned.checked ADD CONSTRAINT trap CHECK (owned.trap(fence));
CREATE TABLE owned.indexed (id int PRIMARY KEY);
SELECT lockfence.attach('owned.indexed');
CREATE INDEX trap ON owned.indexed ((owned.trap(fence)));
INSERT INTO owned.indexed VALUES (1, 1);
-- nor does an owner keep the other tables from it: guarded twice, a table is two fences
CREATE TABLE owned.twice (id int PRIMARY KEY, fence bigint);
SELECT lockfence.attach('owned.twice', 'twice:{id}', 'fence');
CREATE TRIGGER another BEFORE UPDATE ON owned.twice FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('resource=another:{id}');
RESET ROLE;

-- what depends on the extension besides
CREATE TABLE viewed (id int PRIMARY KEY);
SELECT lockfence.attach('viewed');
CREATE VIEW a_view AS SELECT * FROM viewed;
CREATE TABLE keyed (token lockfence.fence_token) PARTITION BY LIST (token);
CREATE FUNCTION knows(text, lockfence.fence_token) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE TABLE several (tokens lockfence.fence_token[]);
CREATE DOMAIN my_token AS lockfence.fence_token;
CREATE VIEW my_stats AS SELECT * FROM lockfence.stats;
-- an extension, where pgTAP is there
SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pgtap') AS has_pgtap \gset
\if :has_pgtap
CREATE EXTENSION lockfence_pgtap CASCADE;
\endif

SELECT lockfence.fence_ddl('migrations');
CREATE TEMP TABLE file AS SELECT c.oid::regclass::text AS relation, pg_relation_filenode(c.oid) AS node
FROM pg_class c WHERE c.relkind = 'r' AND c.relname ~ '^(plain|part|parent|child|unfenced)';

-- only an administrator
SET ROLE regress_retire_owner;
SELECT * FROM lockfence.retire();
RESET ROLE;

\pset format unaligned
SELECT * FROM lockfence.retire() WHERE object NOT LIKE 'extension %';
-- once more: what is left
SELECT object, done FROM lockfence.retire() WHERE object NOT LIKE 'extension %';
SELECT (SELECT count(*) FROM lockfence.retire() WHERE object = 'extension lockfence_pgtap' AND NOT done)
	= (SELECT count(*) FROM pg_extension WHERE extname = 'lockfence_pgtap') AS is_told;
\pset format aligned
SELECT count(*) AS tables, count(*) FILTER (WHERE node IS DISTINCT FROM pg_relation_filenode(relation::regclass)) AS rewritten FROM file;
\set VERBOSITY terse
DROP EXTENSION lockfence_lease, lockfence;
\set VERBOSITY default

DROP VIEW a_view, my_stats;
DROP FUNCTION knows;
DROP TABLE several, keyed;
DROP DOMAIN my_token;
\if :has_pgtap
DROP EXTENSION lockfence_pgtap;
\endif
DROP INDEX owned.trap;
SET ROLE regress_retire_owner;
ALTER TABLE owned.checked DROP CONSTRAINT trap;
RESET ROLE;
SELECT * FROM lockfence.retire();
DROP EXTENSION lockfence_lease, lockfence;
SELECT * FROM plain;
SELECT * FROM part;
SELECT * FROM unfenced;
SELECT attrelid::regclass, attname, atttypid::regtype FROM pg_attribute
WHERE attrelid IN (SELECT relation::regclass FROM file) AND attname ~* 'fence|to' AND attnum > 0 AND atttypid = 'bigint'::regtype ORDER BY attrelid::regclass::text;
SELECT count(*) FROM pg_trigger WHERE tgname ~ 'lockfence';
UPDATE plain SET note = 'free';
TRUNCATE job;

\c :back
DROP DATABASE regression_retire;
DROP ROLE regress_retire_owner;
