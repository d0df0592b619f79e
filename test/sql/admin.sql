-- Administration: marks raised, lowered and folded, the epoch; every call audited, with its reason.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_admin;
SET search_path = test_admin;
CREATE VIEW marks AS SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'admin:%' ORDER BY resource;
SELECT coalesce(max(id), 0) AS last_entry FROM lockfence.admin_log \gset
CREATE TABLE last_entry AS SELECT :last_entry::bigint AS id;
CREATE VIEW audit AS SELECT action, resource, before, after, reason FROM lockfence.admin_log
WHERE id > (SELECT id FROM last_entry) ORDER BY id;

-- raise_mark(): force-release
SELECT lockfence.raise_mark('admin:a', 10, 'first');
SELECT lockfence.raise_mark('admin:a', 20, 'holder is gone');
SELECT lockfence.present('admin:a', 19);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present('admin:a', 20);
SELECT lockfence.raise_mark('admin:a', 20, 'equal');
SELECT lockfence.raise_mark('admin:a', 15, 'lower');
\echo :LAST_ERROR_SQLSTATE
-- reset_mark(): lower a poisoned mark
SELECT lockfence.present('admin:b', 9223372036854775807);
SELECT lockfence.present('admin:b', 30);
SELECT lockfence.reset_mark('admin:b', 30, 'poisoned');
SELECT lockfence.present('admin:b', 29);
SELECT lockfence.present('admin:b', 30);
SELECT lockfence.reset_mark('admin:c', 5, 'no mark yet');
SELECT lockfence.reset_mark('admin:c', 7, 'up as well');
SELECT * FROM marks;
-- A reason is required, and a resource, and a token.
SELECT lockfence.raise_mark('admin:a', 30, NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.raise_mark('admin:a', 30, '');
SELECT lockfence.reset_mark('admin:a', 1, '  ');
SELECT lockfence.reset_floor(1, NULL);
SELECT lockfence.set_epoch(1, '');
SELECT lockfence.raise_mark(NULL, 30, 'x');
SELECT lockfence.raise_mark('', 30, 'x');
SELECT lockfence.raise_mark('admin:a', NULL, 'x');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.raise_mark('admin:a', 0, 'x');
SELECT lockfence.reset_mark('admin:a', -1, 'x');
SELECT lockfence.reset_mark('admin:a', NULL, 'x');
SELECT lockfence.reset_mark(NULL, 1, 'x');
SELECT * FROM marks;
-- Each call that worked is in the log, with the session's role and the time.
SELECT * FROM audit;
SELECT DISTINCT role = session_user AS role, at BETWEEN now() - interval '1 hour' AND clock_timestamp() AS at
FROM lockfence.admin_log WHERE id > :last_entry;
CREATE ROLE regress_admin;
GRANT EXECUTE ON FUNCTION lockfence.raise_mark(text, lockfence.fence_token, text) TO regress_admin;
BEGIN;
SET LOCAL ROLE regress_admin;
SELECT lockfence.raise_mark('admin:d', 5, 'by the administrator''s role');
RESET ROLE;
SELECT resource, reason FROM audit WHERE resource = 'admin:d';
ROLLBACK;
REVOKE ALL ON FUNCTION lockfence.raise_mark(text, lockfence.fence_token, text) FROM regress_admin;
DROP ROLE regress_admin;
-- What a transaction rolls back is not in the log either.
BEGIN;
SELECT lockfence.reset_mark('admin:a', 1, 'rolled back');
ROLLBACK;
SELECT count(*) FROM audit WHERE reason = 'rolled back';
-- A holder who resets its own resource's mark is judged by the new one.
BEGIN;
SELECT lockfence.present('admin:a', 20);
SELECT lockfence.reset_mark('admin:a', 50, 'by the holder');
SELECT lockfence.is_current('admin:a', 20);
ROLLBACK;

-- set_epoch(): only forward; all of it in transactions that roll back, since there is no way back
BEGIN;
SELECT lockfence.set_epoch(2, 'restored');
SELECT lockfence.set_epoch(2, 'again');
-- ... an older epoch is stale for every resource at once, marked or not
SAVEPOINT s;
SELECT lockfence.present('admin:a', lockfence.make_token(1, 1000));
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
SELECT lockfence.present('admin:new', 1000);
ROLLBACK TO s;
-- ... a newer one is unknown: 2^63 - 1 poisons nothing
SELECT lockfence.present('admin:new', 9223372036854775807);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
SELECT lockfence.present('admin:new', lockfence.make_token(3, 1));
ROLLBACK TO s;
SELECT lockfence.present('admin:new', lockfence.make_token(2, 1));
SELECT lockfence.is_current('admin:a', lockfence.make_token(1, 1000)) AS older,
	lockfence.is_current('admin:a', lockfence.make_token(2, 1)) AS current,
	lockfence.is_current('admin:a', lockfence.make_token(3, 1)) AS newer;
-- ... nor does the ambient token or a column get past it, nor a row fence
CREATE TABLE item (id integer, note text);
CREATE TABLE job (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'admin:{id}', 'token');
SELECT lockfence.attach('job');
INSERT INTO job VALUES (1, 'new');
SAVEPOINT s;
INSERT INTO item VALUES (1, 'old', lockfence.make_token(1, 5));
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
INSERT INTO item VALUES (1, 'unknown', lockfence.make_token(3, 5));
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
UPDATE job SET fence = lockfence.make_token(1, 5);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
UPDATE job SET fence = lockfence.make_token(3, 5);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
INSERT INTO job VALUES (2, 'unknown', lockfence.make_token(3, 5));
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
UPDATE job SET fence = lockfence.make_token(2, 5);
INSERT INTO item VALUES (1, 'current', lockfence.make_token(2, 5));
-- ... and back it does not go
SELECT lockfence.set_epoch(1, 'back');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
SELECT lockfence.set_epoch(32768, 'x');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
SELECT lockfence.set_epoch(-1, 'x');
ROLLBACK TO s;
SELECT lockfence.set_epoch(NULL, 'x');
ROLLBACK TO s;
SELECT lockfence.set_epoch(32767, 'the last one');
SELECT action, resource, before, after, reason FROM audit WHERE action = 'set_epoch';

ROLLBACK;
SELECT * FROM lockfence.state WHERE name NOT LIKE 'timeline:%';
-- The rollback is noticed at once.
SELECT lockfence.present('admin:a', 21);

-- prune(): folds old marks into the floor, which then covers every resource without a mark
SELECT lockfence.prune(interval '1 day');
SELECT count(*) FROM lockfence.state WHERE name NOT LIKE 'timeline:%';
SELECT lockfence.prune('-1 hour');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.prune(NULL);
SELECT lockfence.present('admin:late', lockfence.make_token(1, 7));
-- (one that sorts last and is low, so that the floor is not just the mark that was folded last)
SELECT lockfence.present('~admin:last', 1);
CREATE TABLE floor_before AS SELECT max(token) AS highest, count(*) AS marks FROM lockfence.mark;
BEGIN;
SELECT lockfence.prune('0') = marks AS all_folded FROM floor_before;
SELECT count(*) FROM lockfence.mark;
SELECT value = highest AS floor_is_highest FROM lockfence.state, floor_before WHERE name = 'floor';
SELECT action, before IS NULL AS no_floor_before, after = highest AS floor, reason ~ '^\d+ marks older than ' AS reason
FROM audit, floor_before WHERE action = 'prune';
-- ... a mark that was removed is still in force
SAVEPOINT s;
\set VERBOSITY sqlstate
SELECT lockfence.present('admin:a', 21);
ROLLBACK TO s;
SELECT lockfence.present('admin:never', 1);
\set VERBOSITY default
ROLLBACK TO s;
-- ... until an administrator lowers the floor
SELECT lockfence.reset_floor(100, 'it was a poisoned mark') = highest AS floor_before FROM floor_before;
SELECT lockfence.present('admin:never', 99);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
SELECT lockfence.reset_floor(100, 'it was a poisoned mark') = highest AS floor_before FROM floor_before;
SELECT lockfence.is_current('admin:never', 99), lockfence.is_current('admin:never', 100);
SELECT lockfence.present('admin:never', 100);
-- ... and a resource with a mark of its own is judged by that
SELECT lockfence.reset_mark('admin:own', 5, 'below the floor');
SELECT lockfence.present('admin:own', 5);
SELECT lockfence.raise_mark('admin:other', 150, 'above the floor');
SAVEPOINT s;
SELECT lockfence.raise_mark('admin:third', 50, 'below the floor');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
-- ... NULL takes the floor away, and no number that is no token may stand for one
SELECT lockfence.reset_floor(NULL, 'none');
SELECT lockfence.present('admin:never-2', 1);
SELECT lockfence.reset_floor(0, 'no token');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- Marks of an epoch after the current one stay, or the floor would shut out the current one.
BEGIN;
SELECT lockfence.set_epoch(0, 'to have one') IS NULL AS none_before;
SELECT lockfence.prune('0') > 0 AS folded;
SELECT count(*) > 0 AS later_ones, count(*) FILTER (WHERE lockfence.token_epoch(token) = 0) AS current FROM lockfence.mark;
SELECT lockfence.token_epoch(value) FROM lockfence.state WHERE name = 'floor';
ROLLBACK;
-- An epoch of 0 is one like any other, and not the lack of one.
BEGIN;
SELECT lockfence.set_epoch(0, 'the first') IS NULL AS none_before;
SELECT lockfence.present('admin:first', lockfence.make_token(1, 1));
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- A mark that its own transaction holds may be folded: the floor covers it.
BEGIN;
SELECT lockfence.present('admin:a', 21);
SELECT lockfence.prune('0') > 0 AS folded;
SELECT lockfence.present('admin:a', 21);
SELECT * FROM lockfence.presented();
ROLLBACK;

-- reconcile(): raises marks to what the rows carry, as after a restore without the marks
CREATE TABLE item (id integer, note text);
SELECT lockfence.attach('item', 'admin:item-{id}', 'token');
BEGIN;
SET LOCAL lockfence.bypass = on;
INSERT INTO item VALUES (1, 'x', 10), (1, 'x', 12), (2, 'x', 20), (3, 'x', NULL), (4, 'x', 0), (5, 'x', -7);
COMMIT;
SELECT lockfence.present('admin:item-2', 30);
SELECT lockfence.reconcile('item');
SELECT lockfence.reconcile('item');
SELECT * FROM marks WHERE resource LIKE 'admin:item%';
CREATE TABLE job (id integer);
SELECT lockfence.reconcile('job');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.attach('job');
SELECT lockfence.reconcile('job');

DROP SCHEMA test_admin CASCADE;
