-- What others named, in messages and in SQL: on one line, and in SQL the same name again.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA test_visible;
SET search_path = test_visible;

SELECT lockfence._visible(E'two\r\nlines\ttab \x1b[2J bell\x07 del\x7f \\ é 字 😀');
SELECT lockfence._visible(E'next\u0085line\u2028sep\u2029par\u202Eover\u2066iso\u061Cmark'), lockfence._visible(''), lockfence._visible(NULL) IS NULL;
SELECT lockfence._identifier('plain'), lockfence._identifier('Two words'), lockfence._identifier('a"b\c'), lockfence._identifier('select');
SELECT lockfence._identifier(E'a"b\\c\n;--*/$$'), lockfence._identifier(E'\u2028');
SELECT lockfence._literal('plain'), lockfence._literal('it''s'), lockfence._literal('a\b');
SELECT lockfence._literal(E'it''s\\\n;--*/$$'), lockfence._literal(E'\u0085');

-- Which characters: all of the first plane, whose surrogates are none.
CREATE VIEW character AS
SELECT code, chr(code) AS value FROM generate_series(1, 65533) AS code WHERE code NOT BETWEEN 55296 AND 57343;
SELECT string_agg(lpad(to_hex(code), 4, '0'), ' ' ORDER BY code) FROM character WHERE lockfence._visible(value) <> value;
SELECT count(*) FROM character
WHERE lockfence._visible(value) <> value AND lockfence._visible(value) <> '\u' || lpad(to_hex(code), 4, '0');

-- And back again, each between what could end it.
CREATE PROCEDURE read_back() LANGUAGE plpgsql AS $test$
DECLARE
	wanted text;
	got text;
	key text;
BEGIN
	FOR wanted IN
		SELECT v.before || c.value || v.after FROM character c, (VALUES ('', ''), ('\', '"'), ('''', '\'), ('*/ $$', '--')) AS v (before, after)
		WHERE c.code < 256 OR lockfence._visible(c.value) <> c.value
	LOOP
		EXECUTE 'SELECT ' || lockfence._literal(wanted) INTO got;
		ASSERT got = wanted, lockfence._literal(wanted);
		EXECUTE 'SELECT o.k FROM (SELECT 1 AS ' || lockfence._identifier(wanted) || ') AS "the row", LATERAL json_object_keys(row_to_json("the row")) AS o (k)' INTO key;
		ASSERT key = wanted, lockfence._identifier(wanted);
		ASSERT lockfence._literal(wanted) || lockfence._identifier(wanted) !~ '[[:cntrl:]\u2028-\u202e\u2066-\u2069]', wanted;
	END LOOP;
END
$test$;
CALL read_back();
SELECT lockfence._relation_name('character'), lockfence._relation_literal('character'), lockfence._relation_name(0) IS NULL;

-- Messages: each error of the fence, of a table, a column, a resource, a row, a role that are named to break lines.
CREATE FUNCTION told(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
	hint text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN SQLSTATE || CASE WHEN message || detail || hint ~ '[[:cntrl:]\u2028]' THEN ' BROKEN' ELSE '' END || ': ' || concat_ws(' | ', message, nullif(detail, ''));
END
$$;
CREATE TABLE U&"t\000ADROP ""x\2028" (U&"k\000A""" text PRIMARY KEY, state text, U&"fence\000D" lockfence.fence_token);
CREATE TABLE U&"row\000A" (U&"id\0009" text PRIMARY KEY, state text);
SELECT lockfence.attach(U&'"t\000ADROP ""x\2028"', U&'r\000A:{k\000A"}', U&'fence\000D');
SELECT lockfence.attach(U&'"row\000A"');
CREATE TEMP VIEW tries AS SELECT row_number() OVER () AS place, told(statement) FROM (VALUES
	($$INSERT INTO U&"t\000ADROP ""x\2028" VALUES (U&'v\000Aw', 's')$$),
	($$INSERT INTO U&"t\000ADROP ""x\2028" VALUES (U&'v\000Aw', 's', 0)$$),
	($$INSERT INTO U&"t\000ADROP ""x\2028" VALUES (NULL, 's', 5)$$),
	($$INSERT INTO U&"t\000ADROP ""x\2028" VALUES (repeat('x', 2000), 's', 5)$$),
	($$INSERT INTO U&"t\000ADROP ""x\2028" VALUES (U&'v\000Aw', 's', 5)$$),
	($$UPDATE U&"t\000ADROP ""x\2028" SET U&"fence\000D" = 4$$),
	($$UPDATE U&"t\000ADROP ""x\2028" SET U&"fence\000D" = 2^60::bigint$$),
	($$TRUNCATE U&"t\000ADROP ""x\2028"$$),
	($$INSERT INTO U&"row\000A" VALUES (U&'v\000Aw', 's', 5)$$),
	($$UPDATE U&"row\000A" SET fence = 4$$),
	($$UPDATE U&"row\000A" SET state = 't'$$),
	($$SELECT lockfence.present(U&'name\001B', 0)$$),
	($$SELECT lockfence.raise_mark(U&'r\000A:v\000Aw', 1, 'test')$$),
	($$SELECT lockfence.attach(U&'"row\000A"')$$),
	($$SELECT lockfence.attach(U&'"plain\000A"', U&'{no\000A}')$$),
	($$SELECT lockfence.attach(U&'"plain\000A"', accept => U&'no\000A')$$),
	($$SELECT lockfence.attach(U&'"plain\000A"', token_column => U&'id\0009')$$),
	($$SELECT lockfence.attach(U&'"view\000A"')$$),
	($$SELECT lockfence.detach(U&'"plain\000A"')$$),
	($$SELECT lockfence.reconcile(U&'"plain\000A"')$$),
	($$SELECT lockfence.guarded_update(U&'"plain\000A"', '{"id": 1}', '{"id": 1}', 5)$$),
	($$SELECT lockfence.guarded_update(U&'"row\000A"', '{"no\u000A": 1}', '{"state": 1}', 5)$$),
	($$SELECT lockfence.guarded_update(U&'"row\000A"', '{"id\t": []}', '{"state": 1}', 5)$$),
	($$SELECT lockfence.drill(U&'"row\000A"', '{"id\t": "no\n"}', '{"state": 1}')$$),
	($$SELECT lockfence.template_columns(U&'{\000A')$$)
) AS v (statement);
CREATE TABLE U&"plain\000A" (U&"id\0009" text PRIMARY KEY);
CREATE VIEW U&"view\000A" AS SELECT 1;
SELECT told FROM tries ORDER BY place;
ALTER TABLE U&"t\000ADROP ""x\2028" RENAME U&"k\000A""" TO k;
SELECT told($$INSERT INTO U&"t\000ADROP ""x\2028" VALUES (U&'v\000Aw', 's', 5)$$);

SET client_min_messages = error;
DROP SCHEMA test_visible CASCADE;
