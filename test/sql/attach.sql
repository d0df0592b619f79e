-- attach() and detach(): what they make of a table, without touching its rows.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_attach;
SET search_path = test_attach;
CREATE VIEW guards AS
SELECT tgrelid::regclass AS target, tgname, tgtype & 1 AS row_level, tgenabled, tgattr::text AS columns, tgqual IS NULL AS always
FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
WHERE tgname LIKE '~lockfence%' AND c.relnamespace = 'test_attach'::regnamespace
ORDER BY tgrelid::regclass::text COLLATE "C", tgname;

-- No rewrite and no scan, of the table or of what it keeps out of line.
CREATE TABLE big (id integer PRIMARY KEY, filler text);
ALTER TABLE big ALTER filler SET STORAGE EXTERNAL;
INSERT INTO big SELECT n, repeat('x', 5000) FROM generate_series(1, 2000) n;
CREATE VIEW big_files AS
SELECT pg_relation_filenode(oid) AS file, pg_relation_filenode(reltoastrelid) AS toast_file,
	pg_relation_size(oid) AS size, pg_relation_size(reltoastrelid) AS toast_size
FROM pg_class WHERE oid = 'big'::regclass;
CREATE TABLE files_before AS SELECT * FROM big_files;
SELECT count(*), pg_relation_size('big') > 50000 AS of_some_size FROM big;
CREATE FUNCTION sees_no_scan(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	scans_before bigint := pg_stat_get_xact_numscans('big'::regclass);
BEGIN
	EXECUTE statement;
	RETURN pg_stat_get_xact_numscans('big'::regclass) = scans_before;
END
$$;
SELECT sees_no_scan($$SELECT lockfence.attach('big')$$) AS not_scanned;
SELECT sees_no_scan($$SELECT count(*) FROM test_attach.big$$) AS not_scanned;
TABLE files_before EXCEPT TABLE big_files;
SELECT lockfence.detach('big');
SELECT sees_no_scan($$SELECT lockfence.attach('big', 'attach:{id}', 'token')$$) AS not_scanned;
SELECT lockfence.detach('big');
SELECT sees_no_scan($$SELECT lockfence.attach('big', 'attach:big')$$) AS not_scanned;
TABLE files_before EXCEPT TABLE big_files;

-- Guards fire always, last, for every column and row.
SELECT * FROM guards;
SELECT lockfence.detach('big');
SELECT lockfence.attach('big', 'attach:{id}', 'token');
SELECT * FROM guards;
CREATE TRIGGER "zzz" BEFORE UPDATE ON big FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
SELECT tgname FROM pg_trigger WHERE tgrelid = 'big'::regclass ORDER BY tgname DESC LIMIT 1;

-- detach() undoes it; the column, the tokens and the marks stay.
UPDATE big SET token = 5 WHERE id = 1;
SELECT lockfence.detach('big');
SELECT * FROM guards;
UPDATE big SET filler = 'free' WHERE id = 1;
SELECT id, filler, token FROM big WHERE id = 1;
SELECT token FROM lockfence.mark WHERE resource = 'attach:1';
SELECT lockfence.detach('big');
\echo :LAST_ERROR_SQLSTATE
-- ... so a fence that is put back refuses what it would have refused.
SELECT lockfence.attach('big', 'attach:{id}', 'token');
UPDATE big SET token = 4 WHERE id = 1;
-- A fence is declared once; to change one is to detach it first.
SELECT lockfence.attach('big', 'attach:other');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.detach('big');

-- Every setting stands in the trigger's arguments, and the view reads it there.
CREATE FUNCTION knows(resource text, token bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT lockfence.attach('big', 'attach:{id}', 'token', accept => 'presented', enforcement => 'advisory',
	missing => 'allow', validator => 'knows(text, bigint)');
SELECT regexp_replace(replace(encode(tgargs, 'escape'), '\000', ' | '), '\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ', 'TIME') AS arguments
FROM pg_trigger WHERE tgrelid = 'big'::regclass AND tgname LIKE '~%' ORDER BY tgname;
SELECT target, kind, resource, token_column, accept, enforcement, missing, repeat, validator,
	advisory_since BETWEEN now() - interval '1 hour' AND now() AS since, inherited, triggers
FROM lockfence.fences WHERE target = 'big'::regclass;
SELECT lockfence.detach('big');
SELECT lockfence.attach('big', 'attach:{id}', repeat => 'reject');
SELECT kind, token_column, accept, enforcement, missing, repeat, validator
FROM lockfence.fences WHERE target = 'big'::regclass;
-- The view shows what the triggers really are.
ALTER TABLE big DISABLE TRIGGER "~lockfence_row";
SELECT triggers FROM lockfence.fences WHERE target = 'big'::regclass;
SELECT lockfence.detach('big');
-- A rolled-back attach() leaves nothing.
BEGIN;
SELECT lockfence.attach('big');
ROLLBACK;
SELECT * FROM guards;
SELECT attname FROM pg_attribute WHERE attrelid = 'big'::regclass AND attname = 'fence';

-- Partitioned tables: every level and leaf has its guards, also where columns have other numbers.
CREATE TABLE part (id integer NOT NULL, region text NOT NULL, state text) PARTITION BY LIST (region);
CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu') PARTITION BY RANGE (id);
CREATE TABLE part_eu_1 PARTITION OF part_eu FOR VALUES FROM (0) TO (100);
CREATE TABLE part_us (junk integer, state text, junk2 integer, region text NOT NULL, id integer NOT NULL);
ALTER TABLE part_us DROP COLUMN junk, DROP COLUMN junk2;
ALTER TABLE part ATTACH PARTITION part_us FOR VALUES IN ('us');
SELECT lockfence.attach('part', 'attach:part-{region}-{id}', 'token');
SELECT * FROM guards;
SELECT target, kind, inherited FROM lockfence.fences
WHERE target::text LIKE 'part%' ORDER BY target::text COLLATE "C";
SELECT attrelid::regclass, attnum FROM pg_attribute
WHERE attname = 'token' AND attrelid IN ('part'::regclass, 'part_us'::regclass) ORDER BY 1;
-- A partition made later has the row guard, always on.
CREATE TABLE part_asia PARTITION OF part FOR VALUES IN ('asia');
SELECT target, tgname, tgenabled FROM guards WHERE target = 'part_asia'::regclass;
INSERT INTO part VALUES (1, 'asia', 'new');
SET session_replication_role = replica;
INSERT INTO part VALUES (1, 'asia', 'new');
INSERT INTO part_asia VALUES (1, 'asia', 'new');
RESET session_replication_role;
-- ... and so has one that comes by ATTACH PARTITION.
CREATE TABLE part_africa (token lockfence.fence_token, region text NOT NULL, state text, id integer NOT NULL);
ALTER TABLE part ATTACH PARTITION part_africa FOR VALUES IN ('africa');
SELECT target, tgname, tgenabled FROM guards WHERE target = 'part_africa'::regclass;

-- Through the root and straight into a leaf, it is one fence.
INSERT INTO part VALUES (1, 'eu', 'new'), (1, 'us', 'new');
INSERT INTO part VALUES (1, 'eu', 'new', 10), (1, 'us', 'new', 10), (1, 'asia', 'new', 10), (1, 'africa', 'new', 10);
UPDATE part SET state = 'stale', token = 9 WHERE region = 'eu';
UPDATE part_eu_1 SET state = 'stale', token = 9;
UPDATE part SET state = 'stale', token = 9 WHERE region = 'us';
UPDATE part_us SET state = 'stale', token = 9;
UPDATE part_africa SET state = 'stale', token = 9;
UPDATE part_us SET state = 'inherited';
UPDATE part SET state = 'inherited' WHERE region = 'us';
UPDATE part SET state = 'inherited' WHERE region = 'africa';
UPDATE part SET state = 'higher', token = 11;
SELECT tableoid::regclass, * FROM part ORDER BY region;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'attach:part-%' ORDER BY resource;
SELECT lockfence.resource_of('part_us', p) FROM part_us p;
-- A leaf is not detached alone.
SELECT lockfence.detach('part_us');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.detach('part_eu');
SELECT lockfence.detach('part');
SELECT * FROM guards;
UPDATE part SET state = 'free';
-- A leaf may be fenced alone, with a column that it has, and then its parent cannot be.
SELECT lockfence.attach('part_us');
SELECT lockfence.attach('part_us', token_column => 'token');
UPDATE part SET state = 'leaf' WHERE region = 'us';
SELECT lockfence.attach('part');
SELECT lockfence.detach('part_us');

-- A constant fence stands on every table of the family, for each statement fires its own target's guard.
SELECT lockfence.attach('part', 'attach:constant');
SELECT * FROM guards WHERE tgname = '~lockfence_statement';
DELETE FROM part;
DELETE FROM part_eu_1;
DELETE FROM part_us;
SELECT lockfence.detach('part');
SELECT * FROM guards;

-- Inheritance: parents' triggers are not their children's, so each child has its own.
CREATE TABLE parent (id integer PRIMARY KEY, note text);
CREATE TABLE child (extra integer) INHERITS (parent);
CREATE TABLE grandchild () INHERITS (child);
CREATE TABLE other_parent (id integer);
CREATE TABLE two_parents () INHERITS (parent, other_parent);
SELECT lockfence.attach('parent');
SELECT target, tgname, tgenabled FROM guards;
INSERT INTO parent VALUES (1, 'new', 10);
INSERT INTO grandchild VALUES (2, 'new', 20, 10);
INSERT INTO two_parents VALUES (3, 'new', 10);
UPDATE parent SET note = 'inherited' WHERE id = 2;
UPDATE grandchild SET note = 'stale', fence = 9;
UPDATE parent SET note = 'stale', fence = 9 WHERE id = 3;
UPDATE parent SET note = 'equal', fence = 10;
SELECT tableoid::regclass, * FROM parent ORDER BY id;
SELECT lockfence.detach('parent');
SELECT * FROM guards;
UPDATE parent SET note = 'free';

-- A temporary table is fenced like another, and only where no name of it shadows.
CREATE TEMP TABLE big (id integer, fence bigint);
SELECT lockfence.attach('pg_temp.big');
UPDATE test_attach.big SET filler = 'not fenced' WHERE id = 2;
INSERT INTO pg_temp.big VALUES (1, 10);
\set VERBOSITY sqlstate
UPDATE pg_temp.big SET fence = 9;
\set VERBOSITY default
DROP TABLE pg_temp.big;

DROP SCHEMA test_attach CASCADE;
