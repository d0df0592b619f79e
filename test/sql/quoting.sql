-- Odd names: of schemas, tables, columns and resources.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA "Test ""Quoting"". {x}";
SET search_path = "Test ""Quoting"". {x}";
CREATE TABLE "Tab'le "" . $1 {id}" ("Key "" col'" integer PRIMARY KEY, "select" text, U&"\00fcn\00efc\00f6de" text, "a}" text);
INSERT INTO "Tab'le "" . $1 {id}" VALUES (1, 'one', U&'\00e9', '}'), (2, 'two', '{}', '{{');

-- A row fence with a column whose name needs quotes.
SELECT lockfence.attach('"Tab''le "" . $1 {id}"', token_column => 'the "token" {it}');
SELECT kind, token_column FROM lockfence.fences WHERE target = '"Tab''le "" . $1 {id}"'::regclass;
UPDATE "Tab'le "" . $1 {id}" SET "select" = 'set', "the ""token"" {it}" = 10;
UPDATE "Tab'le "" . $1 {id}" SET "select" = 'set', "the ""token"" {it}" = 9 WHERE "Key "" col'" = 1;
SELECT lockfence.guarded_update('"Tab''le "" . $1 {id}"', '{"Key \" col''": 1}', '{"select": "q''\"uo{te}d\\ $1"}', 11);
SELECT "Key "" col'", "select", "the ""token"" {it}" FROM "Tab'le "" . $1 {id}" ORDER BY 1;
SELECT lockfence.detach('"Tab''le "" . $1 {id}"');

-- A named fence: quotes, braces, equals signs and backslashes in the template, values as they are.
SELECT lockfence.attach('"Tab''le "" . $1 {id}"', E'quoting:{{}} ''"=\\ {Key " col''}/{select}', 'tok=en');
SELECT kind, resource, token_column FROM lockfence.fences WHERE target = '"Tab''le "" . $1 {id}"'::regclass;
UPDATE "Tab'le "" . $1 {id}" SET "tok=en" = 10;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'quoting:%' ORDER BY resource;
SELECT lockfence.resource_of('"Tab''le "" . $1 {id}"', t) FROM "Tab'le "" . $1 {id}" t ORDER BY "Key "" col'";
SELECT lockfence.guarded_delete('"Tab''le "" . $1 {id}"', '{"Key \" col''": 2, "select": "set"}', 9);
SELECT lockfence.guarded_delete('"Tab''le "" . $1 {id}"', '{"Key \" col''": 2, "select": "set"}', 10);
SELECT lockfence.reconcile('"Tab''le "" . $1 {id}"');
SELECT lockfence.detach('"Tab''le "" . $1 {id}"');

-- A placeholder may be any column whose name has no brace, in any alphabet.
SELECT lockfence.attach('"Tab''le "" . $1 {id}"', U&'quoting:\00fc/{\00fcn\00efc\00f6de}');
BEGIN;
SELECT lockfence.present(U&'quoting:\00fc/\00e9', 5);
DELETE FROM "Tab'le "" . $1 {id}";
SELECT resource, token FROM lockfence.presented();
COMMIT;
SELECT lockfence.detach('"Tab''le "" . $1 {id}"');
SELECT lockfence.attach('"Tab''le "" . $1 {id}"', 'quoting:{a}}');
SELECT lockfence.attach('"Tab''le "" . $1 {id}"', 'quoting:{a}}}');
SELECT lockfence.template_columns(E'{{{Key " col''}}}{select}{{select}}'), lockfence.template_columns('{{none}}');

-- Values cannot break out of their place: a name is a name, and braces in a value are no placeholders.
CREATE TABLE "order" ("user" text, "group" text);
SELECT lockfence.attach('"order"', 'quoting:{user}/{group}', 'token');
INSERT INTO "order" VALUES ('{group}', '''; DROP TABLE x; --', 5);
INSERT INTO "order" VALUES ('a/b', 'c', 5), ('a', 'b/c', 5);
SELECT DISTINCT lockfence.resource_of('"order"', o) FROM "order" o ORDER BY 1;
SELECT lockfence.guarded_update('"order"', '{"user": "{group}"}', '{"group": "''; DROP TABLE x; --"}', 5);

-- Names of partitions, and a validator that needs quotes.
CREATE FUNCTION "Valid? {x}"(text, lockfence.fence_token) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE TABLE "P {1}" ("Id" integer) PARTITION BY LIST ("Id");
CREATE TABLE "P ""leaf""" PARTITION OF "P {1}" FOR VALUES IN (1);
SELECT lockfence.attach('"P {1}"', 'quoting:{Id}', 'Token', validator => '"Valid? {x}"(text, lockfence.fence_token)');
SELECT validator FROM lockfence.fences WHERE target = '"P ""leaf"""'::regclass;
INSERT INTO "P {1}" VALUES (1, 5);
INSERT INTO "P ""leaf""" VALUES (1, 4);
TRUNCATE "P ""leaf""";
-- A name in other letters is another column.
SELECT lockfence.detach('"P {1}"');
SELECT lockfence.attach('"P {1}"', 'quoting:{id}');

-- What is no text in the database's encoding cannot become text.
SELECT lockfence.fence_settings(convert_to('resource=', 'UTF8') || '\xf0');
\echo :LAST_ERROR_SQLSTATE

DROP SCHEMA "Test ""Quoting"". {x}" CASCADE;
