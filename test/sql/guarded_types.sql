-- Guarded writes: values of every kind go from jsonb through the column's own input function.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_types;
SET search_path = test_types;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'so "so", {x}');
CREATE TYPE pair AS (a integer, b text);
CREATE DOMAIN percent AS integer CHECK (value BETWEEN 0 AND 100);
CREATE DOMAIN required AS text NOT NULL;
CREATE DOMAIN tags AS text[];
CREATE DOMAIN document AS jsonb;
CREATE TABLE kinds (
	id integer PRIMARY KEY, big bigint, small smallint, num numeric, money2 numeric(10, 2), flt float8, truth boolean,
	txt text, vc varchar(5), ch char(5), moment timestamptz, day date, span interval, raw bytea, uid uuid,
	ints integer[], texts text[], grid integer[], js json, jb jsonb, docs jsonb[], md mood, moods mood[], pr pair,
	rng int4range, addr inet, pct percent, req required DEFAULT '', tgs tags, doc document, bits bit(3), cls regclass);
SELECT lockfence.attach('kinds', 'types:kinds', 'token');
INSERT INTO kinds (id, token) VALUES (1, 10), (2, 10);
CREATE FUNCTION put(changes jsonb) RETURNS bigint LANGUAGE sql
AS $$SELECT lockfence.guarded_update('test_types.kinds', '{"id": 1}', changes, 10)$$;

-- Numbers keep every digit, above 2^53 too, and as strings.
SELECT put('{"big": 9007199254740993, "small": -32768, "num": 123456789012345678901234567890.123456789, "money2": 1.005}');
SELECT big, small, num, money2 FROM kinds WHERE id = 1;
SELECT put('{"big": "9223372036854775807", "num": "NaN", "flt": 1e300, "small": "7"}');
SELECT big, small, num, flt FROM kinds WHERE id = 1;
SELECT put('{"big": 9223372036854775808}');
\echo :LAST_ERROR_SQLSTATE
SELECT put('{"small": 1.5}');
\echo :LAST_ERROR_SQLSTATE
SELECT put('{"truth": true, "txt": false}');
SELECT put('{"truth": "off", "txt": 12.50}');
SELECT truth, txt FROM kinds WHERE id = 1;

-- Strings: as they are, with quotes, backslashes, braces, and text that looks like something else.
SELECT put('{"txt": "it''s \"quoted\" \\ {a,b} $1 null", "vc": "abcde", "ch": "ab"}');
SELECT txt, vc, ch, length(ch) FROM kinds WHERE id = 1;
SELECT put('{"txt": "", "vc": "null"}');
SELECT txt = '' AS empty, vc FROM kinds WHERE id = 1;
SELECT put('{"vc": "abcdef"}');
\echo :LAST_ERROR_SQLSTATE
SELECT put('{"txt": "\u00fc\n\t"}');
SELECT txt = E'\u00fc\n\t' AS same FROM kinds WHERE id = 1;
SELECT put('{"txt": {"a": 1}}');
\echo :LAST_ERROR_SQLSTATE
SELECT put('{"txt": [1]}');

-- null is NULL, the string "null" is not.
SELECT put('{"txt": null, "big": null, "ints": null, "js": null, "jb": null, "md": null, "pr": null, "pct": null}');
SELECT txt IS NULL, big IS NULL, ints IS NULL, js IS NULL, jb IS NULL, md IS NULL, pr IS NULL, pct IS NULL FROM kinds WHERE id = 1;

-- Times: the session's settings decide how text is read, as everywhere.
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SELECT put('{"moment": "2024-02-29T12:00:00.123456+02:00", "day": "2024-02-29", "span": "1 mon 2 days 03:04:05"}');
SELECT moment, day, span FROM kinds WHERE id = 1;
SELECT put('{"moment": "infinity", "day": "2023-02-29"}');
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY sqlstate
SELECT put('{"moment": 1709204400}');
\set VERBOSITY default

-- Binary data, identifiers, networks, bits, ranges, composites: by their text form.
SELECT put('{"raw": "\\x00ff", "uid": "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "addr": "10.0.0.1/8", "bits": "101",
	"rng": "[1,10)", "pr": "(1,\"a,b\")", "cls": "test_types.kinds"}');
SELECT raw, uid, addr, bits, rng, pr, cls FROM kinds WHERE id = 1;
SELECT put('{"pr": {"a": 1, "b": "x"}}');
\echo :LAST_ERROR_SQLSTATE
SELECT put('{"rng": [1, 10]}');
SELECT put('{"bits": "1"}');
\echo :LAST_ERROR_SQLSTATE

-- Arrays: nested, with NULL, quotes, braces, commas and text that looks like NULL; or in their text form.
SELECT put('{"ints": [1, null, 3], "grid": [[1, 2], [3, 4]], "texts": ["a,b", "q\"uote", "back\\slash", "{x}", null, "null", "NULL", "", " sp "]}');
SELECT ints, grid, texts, array_position(texts, 'null') AS word, array_position(texts, NULL) AS none FROM kinds WHERE id = 1;
SELECT put('{"ints": [], "texts": "{one,two}"}');
SELECT ints, texts FROM kinds WHERE id = 1;
\set VERBOSITY sqlstate
SELECT put('{"grid": [[1, 2], [3]]}');
SELECT put('{"grid": [[1, 2], 3]}');
\set VERBOSITY default
SELECT put('{"ints": ["x"]}');
\echo :LAST_ERROR_SQLSTATE
SELECT put('{"ints": {"a": 1}}');
\set VERBOSITY sqlstate
SELECT put('{"ints": 1}');
\set VERBOSITY default
SELECT put('{"docs": [{"a": [1, 2]}, "text", "3", 3, null]}');
SELECT docs, docs[2] FROM kinds WHERE id = 1;
SELECT put('{"moods": ["ok", "so \"so\", {x}"], "tgs": ["a", "b c"]}');
SELECT moods, moods[2] = 'so "so", {x}' AS same, tgs FROM kinds WHERE id = 1;

-- JSON: a document is taken as it stands, a string is a string.
SELECT put('{"js": {"a": [1, "x", null]}, "jb": {"b": {"c": 1.50}}, "doc": {"d": true}}');
SELECT js, jb, doc FROM kinds WHERE id = 1;
SELECT put('{"js": "it''s \"q\"", "jb": "null", "doc": "{}"}');
SELECT js, jb, doc, jsonb_typeof(jb) AS jb_is, jsonb_typeof(doc) AS doc_is FROM kinds WHERE id = 1;
SELECT put('{"js": 1.0, "jb": true, "doc": [1, 2]}');
SELECT js, jb, doc FROM kinds WHERE id = 1;
SELECT put('{"js": [], "jb": {}}');
SELECT js, jb FROM kinds WHERE id = 1;

-- Enums and domains, with their constraints.
SELECT put('{"md": "so \"so\", {x}", "pct": 100}');
SELECT md, pct FROM kinds WHERE id = 1;
SELECT put('{"md": "happy"}');
\echo :LAST_ERROR_SQLSTATE
SELECT put('{"pct": 101}');
\echo :LAST_ERROR_SQLSTATE
SELECT put('{"req": null}');
\echo :LAST_ERROR_SQLSTATE
SELECT put('{"req": "given"}');

-- Keys of every kind find the row.
SELECT put('{"big": 9007199254740993, "num": 1.50, "money2": 2, "flt": 0.1, "truth": true, "txt": "t", "vc": "v", "ch": "c",
	"moment": "2024-01-01 00:00:00Z", "day": "2024-01-01", "span": "1 day", "raw": "\\x01", "ints": [1, null],
	"jb": {"a": 1}, "tgs": ["a"]}');
SELECT k.key, lockfence.guarded_update('kinds', jsonb_build_object('id', 1, k.key, k.value), '{"small": 1}', 10) AS rows
FROM jsonb_each('{"big": 9007199254740993, "num": 1.5, "money2": "2.00", "flt": 0.1, "truth": "t", "txt": "t", "vc": "v",
	"ch": "c", "moment": "2024-01-01 01:00:00+01", "day": "2024-01-01", "span": "24:00:00", "raw": "\\x01",
	"uid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "addr": "10.0.0.1/8", "bits": "101", "rng": "[1,9]", "pr": "(1,\"a,b\")",
	"ints": [1, null], "jb": {"a": 1.0}, "md": "so \"so\", {x}", "pct": 100, "req": "given", "tgs": ["a"], "cls": "test_types.kinds"}') k
ORDER BY k.key;
-- ... and no other one.
SELECT lockfence.guarded_update('kinds', '{"big": 9007199254740992}', '{"small": 2}', 10);
SELECT lockfence.guarded_update('kinds', '{"txt": "T"}', '{"small": 2}', 10);
-- NULL in a key is IS NULL.
SELECT lockfence.guarded_update('kinds', '{"id": 2, "big": null, "txt": null}', '{"small": 2}', 10);
SELECT lockfence.guarded_update('kinds', '{"id": 1, "big": null}', '{"small": 3}', 10);
SELECT id, small FROM kinds ORDER BY id;
-- What has no equality is no key.
SELECT lockfence.guarded_update('kinds', '{"js": []}', '{"small": 2}', 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('kinds', '{"js": null}', '{"small": 4}', 10);

-- A type whose equality stands in a schema that is not in the path.
CREATE SCHEMA test_types_hidden;
CREATE FUNCTION test_types_hidden.pair_eq(pair, pair) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT ($1).a = ($2).a';
CREATE FUNCTION test_types_hidden.pair_cmp(pair, pair) RETURNS integer LANGUAGE sql IMMUTABLE
	AS 'SELECT CASE WHEN ($1).a < ($2).a THEN -1 WHEN ($1).a > ($2).a THEN 1 ELSE 0 END';
CREATE OPERATOR test_types_hidden.=== (LEFTARG = pair, RIGHTARG = pair, PROCEDURE = test_types_hidden.pair_eq);
CREATE FUNCTION test_types_hidden.pair_lt(pair, pair) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT ($1).a < ($2).a';
CREATE FUNCTION test_types_hidden.pair_le(pair, pair) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT ($1).a <= ($2).a';
CREATE FUNCTION test_types_hidden.pair_gt(pair, pair) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT ($1).a > ($2).a';
CREATE FUNCTION test_types_hidden.pair_ge(pair, pair) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT ($1).a >= ($2).a';
CREATE OPERATOR test_types_hidden.< (LEFTARG = pair, RIGHTARG = pair, PROCEDURE = test_types_hidden.pair_lt);
CREATE OPERATOR test_types_hidden.<= (LEFTARG = pair, RIGHTARG = pair, PROCEDURE = test_types_hidden.pair_le);
CREATE OPERATOR test_types_hidden.> (LEFTARG = pair, RIGHTARG = pair, PROCEDURE = test_types_hidden.pair_gt);
CREATE OPERATOR test_types_hidden.>= (LEFTARG = pair, RIGHTARG = pair, PROCEDURE = test_types_hidden.pair_ge);
CREATE OPERATOR CLASS test_types_hidden.pair_ops DEFAULT FOR TYPE pair USING btree AS
	OPERATOR 1 test_types_hidden.<, OPERATOR 2 test_types_hidden.<=, OPERATOR 3 test_types_hidden.===,
	OPERATOR 4 test_types_hidden.>=, OPERATOR 5 test_types_hidden.>, FUNCTION 1 test_types_hidden.pair_cmp(pair, pair);
\c -
SET search_path = test_types;
SET client_min_messages = warning;
SELECT lockfence.guarded_update('kinds', '{"pr": "(1,other)"}', '{"small": 5}', 10);
-- A key's value is of its column's length and scale.
SELECT lockfence.guarded_update('kinds', '{"vc": "abcdef"}', '{"small": 5}', 10);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('kinds', '{"money2": 123456789}', '{"small": 5}', 10);
\echo :LAST_ERROR_SQLSTATE

DROP SCHEMA test_types, test_types_hidden CASCADE;
