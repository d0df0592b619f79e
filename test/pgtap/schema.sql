-- The extension goes to any schema, and may be moved, as pgTAP does.
SET client_min_messages = warning;
BEGIN;
CREATE SCHEMA tap;
CREATE SCHEMA "more tap";
CREATE EXTENSION lockfence;
CREATE EXTENSION pgtap SCHEMA tap;
CREATE EXTENSION lockfence_pgtap SCHEMA tap;
CREATE TABLE batch (id bigint PRIMARY KEY, state text);
INSERT INTO batch VALUES (1, 'new');
SELECT lockfence.attach('batch', 'moved:{id}');
SET LOCAL search_path = tap, public;

SELECT plan(8);
SELECT has_fence('batch');
SELECT refuses_stale('UPDATE batch SET state = ''late''', 'moved:1', 42);
SELECT survives_zombie('public.batch', '{"id": 1}', '{"state": "late"}');
SELECT * FROM check_test(survives_zombie('batch', '{"id": 2}', '{"state": "late"}'), false, 'survives_zombie(no row)');

ALTER EXTENSION lockfence_pgtap SET SCHEMA "more tap";
SET LOCAL search_path = "more tap", tap, public;
SELECT fence_is('batch', 'moved:{id}');
SELECT fence_is_intact('batch');
SELECT mark_is('moved:1', NULL);

-- Nothing that production has depends on it.
DROP EXTENSION lockfence_pgtap;
DROP EXTENSION pgtap;
SELECT CASE WHEN EXISTS (SELECT FROM lockfence.fences WHERE target = 'batch'::regclass)
	THEN 'ok 8 - the fence outlives the extension' ELSE 'not ok 8 - the fence is gone' END;
ROLLBACK;
