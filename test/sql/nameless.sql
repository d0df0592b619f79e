-- Rows whose values name no resource, from before the fence or written under bypass: too long a name, an empty one,
-- a null.  No holder has a claim on them, and so they can be mended.
\set SHOW_CONTEXT never
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA test_nameless;
SET search_path = test_nameless;
CREATE TABLE item (id integer PRIMARY KEY, name text, note text);
INSERT INTO item SELECT n, CASE n % 3 WHEN 0 THEN repeat('x', 1025) WHEN 1 THEN '' END, 'before' FROM generate_series(1, 12) n;
SELECT lockfence.attach('item', '{name}', 'token');
CREATE VIEW shown AS SELECT id, CASE WHEN length(name) > 20 THEN '(long)' ELSE name END AS name, note, token FROM item ORDER BY id;

-- They stay what they are to a write that would leave them so.
UPDATE item SET note = 'x', token = 10 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET note = 'x', token = 10 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET note = 'x', token = 10 WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET name = repeat('y', 1025), token = 10 WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
-- An UPDATE that gives them a resource is judged by that one.
UPDATE item SET name = 'nameless:' || id WHERE id <= 3;
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present('nameless:' || n, 10) FROM generate_series(1, 3) n;
UPDATE item SET name = 'nameless:' || id, token = 9 WHERE id <= 3;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET name = 'nameless:' || id, token = 11 WHERE id <= 3;
SELECT * FROM shown WHERE id <= 3;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'nameless:%' ORDER BY 1;
-- ... also by the guarded functions, whatever the key says
SELECT lockfence.guarded_update('item', '{"id": 4}', '{"name": "nameless:4"}', 9);
SELECT lockfence.guarded_update('item', jsonb_build_object('id', 6, 'name', repeat('x', 1025)), '{"name": "nameless:6"}', 9);
SELECT lockfence.guarded_update('item', '{"id": 7, "name": ""}', '{"note": "x"}', 9);
\echo :LAST_ERROR_SQLSTATE
-- A DELETE needs no token, for there is none for them.
DELETE FROM item WHERE id IN (5, 7, 9);
SELECT lockfence.guarded_delete('item', jsonb_build_object('name', repeat('x', 1025)), 9);
DELETE FROM item WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM shown;
-- A row that has a resource cannot be made nameless.
UPDATE item SET name = '', token = 11 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET name = NULL, token = 11 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO item VALUES (20, repeat('x', 1025), 'new', 11);
\echo :LAST_ERROR_SQLSTATE
DROP SCHEMA test_nameless CASCADE;
