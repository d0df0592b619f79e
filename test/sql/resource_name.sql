-- A resource's name is made of values, and the same in every session.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_names;
SET search_path = test_names;
CREATE TYPE mood AS ENUM ('sad', 'very happy');
CREATE TYPE pair AS (a date, b text);
CREATE DOMAIN born AS date;
CREATE TABLE thing (
	i integer, d date, t timestamp, tz timestamptz, tm timetz, iv interval, f8 float8, f4 real, by bytea, m money,
	rc regclass, rp regproc, arr date[], md mood, pr pair, rng tstzrange, bo boolean, n numeric(8, 3), ch char(6), u uuid,
	dom born, j json);
INSERT INTO thing VALUES (1, '2024-03-04', '2024-03-04 05:06:07.5', '2024-03-04 05:06:07.5+00', '05:06:07+02', '1 year 2 days 03:04:05',
	0.1::float8 + 0.2::float8, 0.1, '\x00ff5c', 1234.5, 'test_names.thing', 'pg_catalog.now', '{2024-03-04,NULL}', 'very happy',
	'(2024-03-04,"a b")', '[2024-03-04 00:00:00+00,2024-03-05 00:00:00+00)', true, 1.5, 'ab', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
	'2024-03-04', '{"a": 1}');

-- names that depend on the session's settings: one fence a column, named under quite different settings
CREATE FUNCTION name_by(column_name name) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name_here text;
BEGIN
	PERFORM lockfence.attach('test_names.thing', format('names:{%s}', column_name));
	SELECT lockfence.resource_of('test_names.thing', thing) INTO name_here FROM test_names.thing;
	PERFORM lockfence.detach('test_names.thing');
	RETURN name_here;
END
$$;
CREATE TABLE names AS SELECT attname, test_names.name_by(attname) AS name
FROM pg_attribute WHERE attrelid = 'thing'::regclass AND attnum > 0 ORDER BY attnum;
SELECT * FROM names;
SET DateStyle = 'German, DMY';
SET TimeZone = 'Asia/Kathmandu';
SET IntervalStyle = 'sql_standard';
SET extra_float_digits = -10;
SET bytea_output = 'escape';
SET quote_all_identifiers = on;
SET search_path = pg_catalog;
SELECT d AS shown_here, tz AS shown_here_too, iv, f8, rc FROM test_names.thing;
SELECT attname, name, test_names.name_by(attname) AS name_here FROM test_names.names WHERE name <> test_names.name_by(attname);
SET DateStyle = 'SQL, MDY';
SET TimeZone = 'America/St_Johns';
SET IntervalStyle = 'iso_8601';
SET extra_float_digits = 3;
SET search_path = test_names, public;
SELECT attname, name, name_by(attname) AS name_here FROM names WHERE name <> name_by(attname);
-- ... which are left as they were
SELECT name, setting FROM pg_settings
WHERE name IN ('DateStyle', 'TimeZone', 'IntervalStyle', 'extra_float_digits', 'bytea_output', 'search_path') ORDER BY name COLLATE "C";
-- ... and a fence under one setting meets the mark made under another
CREATE TABLE meeting (day date, at timestamptz);
SELECT lockfence.attach('meeting', 'names:meeting-{day}-{at}', 'token');
INSERT INTO meeting VALUES ('2024-03-04', '2024-03-04 05:06:07+00', 10);
RESET ALL;
SET search_path = test_names;
SET client_min_messages = warning;
SET DateStyle = 'German, DMY';
INSERT INTO meeting VALUES ('04.03.2024', '04.03.2024 05:06:07 UTC', 9);
\echo :LAST_ERROR_SQLSTATE
SELECT resource FROM lockfence.mark WHERE resource LIKE 'names:meeting%';
-- ... through the guarded functions as well
SELECT lockfence.guarded_delete('meeting', '{"day": "2024-03-04", "at": "2024-03-04T05:06:07Z"}', 9);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_delete('meeting', '{"day": "2024-03-04", "at": "2024-03-04T05:06:07Z"}', 10);
RESET DateStyle;

-- A NULL names nothing.
CREATE TABLE named (id integer, a text, b text);
SELECT lockfence.attach('named', 'names:{a}/{b}', 'token');
INSERT INTO named VALUES (1, 'x', NULL, 10);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO named VALUES (1, 'x', 'y', 10);
UPDATE named SET a = NULL, token = 10;
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('named', '{"a": null, "b": "y"}', '{"id": 2}', 10);
-- ... so a row of no resource, from before the fence, is given a name by an UPDATE, and by nothing else.
SELECT lockfence.detach('named');
INSERT INTO named VALUES (9, NULL, 'z', NULL);
SELECT lockfence.attach('named', 'names:{a}/{b}', 'token');
UPDATE named SET id = 10, token = 10 WHERE id = 9;
\echo :LAST_ERROR_SQLSTATE
UPDATE named SET a = 'x', b = 'y', token = 9 WHERE id = 9;
\echo :LAST_ERROR_SQLSTATE
UPDATE named SET a = 'x', b = 'y' WHERE id = 9;
\echo :LAST_ERROR_SQLSTATE
UPDATE named SET a = 'x', b = 'y', token = 10 WHERE id = 9;
-- Empty values are values.
INSERT INTO named VALUES (2, '', '', 10);
SELECT lockfence.resource_of('named', n) FROM named n ORDER BY id;
SELECT lockfence.detach('named');

-- A name that is too long, or empty
SELECT lockfence.attach('named', '{a}{b}', 'token2');
INSERT INTO named VALUES (3, '', '', NULL, 10);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO named VALUES (3, repeat('x', 1000), repeat('y', 25), NULL, 10);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO named VALUES (3, repeat('x', 1000), repeat('y', 24), NULL, 10);
\set VERBOSITY sqlstate
INSERT INTO named VALUES (3, repeat('x', 1000), repeat('y', 24), NULL, 9);
INSERT INTO named VALUES (3, repeat(U&'\20AC', 342), '', NULL, 10);
\set VERBOSITY default
-- Names with more than one byte a character are compared byte by byte, and not folded.
INSERT INTO named VALUES (4, U&'\00e9', U&'\20AC', NULL, 10), (5, U&'e\0301', U&'\20AC', NULL, 3), (6, U&'\00c9', U&'\20AC', NULL, 4);
SELECT token, octet_length(resource) FROM lockfence.mark WHERE resource LIKE U&'%\20AC' ORDER BY token;
SELECT lockfence.present(U&'\00e9\20AC', 9);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.detach('named');

-- Wide values that are kept out of line, and compressed
CREATE TABLE wide (id integer, key text, filler text);
ALTER TABLE wide ALTER key SET STORAGE EXTERNAL, ALTER filler SET STORAGE EXTERNAL;
SELECT lockfence.attach('wide', 'names:{key}', 'token');
INSERT INTO wide VALUES (1, repeat('k', 1000), repeat('f', 100000), 10);
\set VERBOSITY sqlstate
UPDATE wide SET id = 2, token = 9;
\set VERBOSITY default
UPDATE wide SET id = 3, token = 10;
UPDATE wide SET key = key, token = 11;
SELECT count(*) FROM lockfence.mark WHERE resource LIKE 'names:kkk%';

-- A column added later has its default in rows from before.
CREATE TABLE late (id integer);
INSERT INTO late VALUES (1);
ALTER TABLE late ADD zone text DEFAULT 'z';
SELECT lockfence.attach('late', 'names:late-{zone}', 'token');
UPDATE late SET id = 2, token = 10;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'names:late%';
-- The row of another table has no resource in this one.
SELECT lockfence.resource_of('late', w) FROM wide w;
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.resource_of('names', n) FROM names n LIMIT 1;

DROP SCHEMA test_names CASCADE;
