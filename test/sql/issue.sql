-- issue(): the next token of a resource, which is presented by that.
\set SHOW_CONTEXT never
-- a database of its own: other tests may leave a floor, and marks that are higher than any
\set home :DBNAME
CREATE DATABASE regress_lf_issue;
\c regress_lf_issue
SET client_min_messages = error;
CREATE EXTENSION lockfence;
CREATE VIEW marks AS SELECT resource, lockfence.token_epoch(token) AS epoch, lockfence.token_revision(token) AS revision FROM lockfence.mark ORDER BY resource COLLATE "C";
-- Runs a statement; tells what it came to.
CREATE FUNCTION try(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	code := 'accepted';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END
$$;

-- The first is 1, and the next is one above the mark, whatever raised that.
SELECT lockfence.issue('a');
SELECT lockfence.issue('a');
SELECT lockfence.present('a', 10);
SELECT lockfence.issue('a');
SELECT lockfence.raise_mark('a', 20, 'by an administrator');
SELECT lockfence.issue('a');
SELECT lockfence.issue('b');
-- The holder before is out, and the new one goes on.
SELECT code, detail FROM try($$SELECT lockfence.present('a', 20)$$);
SELECT lockfence.present('a', 21), lockfence.is_current('a', 21), lockfence.is_current('a', 20);

-- It is presented: writes of this transaction need no more, and those of others do.
CREATE TABLE batch (id int, note text);
SELECT lockfence.attach('batch', 'batch-{id}', 'token');
BEGIN;
SELECT lockfence.issue('batch-1');
INSERT INTO batch VALUES (1, 'first');
SELECT lockfence.issue('batch-1');
UPDATE batch SET note = 'second' WHERE id = 1;
SELECT * FROM lockfence.presented();
SELECT * FROM batch;
COMMIT;
SELECT code FROM try($$UPDATE batch SET note = 'none'$$);
SELECT code FROM try($$UPDATE batch SET note = 'late', token = 1$$);
UPDATE batch SET note = 'third', token = 2;
SELECT * FROM marks WHERE resource = 'batch-1';
-- ... also where each token is for one transaction only
CREATE TABLE once (id int);
SELECT lockfence.attach('once', 'once', repeat => 'reject');
BEGIN;
SELECT lockfence.issue('once');
INSERT INTO once VALUES (1);
INSERT INTO once VALUES (2);
COMMIT;
BEGIN;
SELECT lockfence.issue('once');
INSERT INTO once VALUES (3);
COMMIT;
SELECT code FROM try($$SELECT lockfence.present(2), 1; INSERT INTO once VALUES (4)$$);
-- ... and a token that was presented before stays held
BEGIN;
SELECT lockfence.present('held', 5);
SELECT lockfence.issue('held');
INSERT INTO batch VALUES (2, 'x', 1);
SELECT * FROM lockfence.presented() ORDER BY resource COLLATE "C";
COMMIT;

-- What is rolled back is given again.
BEGIN;
SELECT lockfence.issue('rolled');
ROLLBACK;
BEGIN;
SELECT lockfence.issue('rolled');
SAVEPOINT s;
SELECT lockfence.issue('rolled');
ROLLBACK TO s;
SELECT * FROM lockfence.presented();
SELECT lockfence.issue('rolled');
SAVEPOINT s;
SELECT lockfence.issue('rolled');
RELEASE s;
SELECT * FROM lockfence.presented();
COMMIT;
SELECT lockfence.issue('rolled');
-- ... at every isolation level, and many in one statement
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT lockfence.issue('rolled');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT lockfence.issue('rolled');
COMMIT;
SELECT count(lockfence.issue('many')), count(DISTINCT lockfence.issue('many-' || i)) FROM generate_series(1, 100) i;
SELECT * FROM marks WHERE resource IN ('many', 'many-77');

-- What is no name of a resource.
SELECT (try(format('SELECT lockfence.issue(%L)', r))).* FROM unnest(ARRAY[NULL, '', repeat('x', 1025)]) r;
BEGIN READ ONLY;
SELECT lockfence.issue('a');
ROLLBACK;
-- A name that no fence can make is told of, as by present().
SET lockfence.unknown_resource = notice;
SET client_min_messages = notice;
SELECT lockfence.issue('batch-');
SET client_min_messages = error;

-- The floor stands for marks that were folded.
SELECT lockfence.present('high', 1000);
SELECT lockfence.prune('0') > 100 AS folded;
SELECT * FROM marks;
SELECT lockfence.issue('a'), lockfence.issue('new');
SELECT lockfence.reset_floor(2000, 'higher') IS NOT NULL AS set;
SELECT lockfence.issue('a') AS has_a_mark, lockfence.issue('newer') AS has_none;

-- The minimum of reopen(), and the epoch, are below every token that is given.
SELECT lockfence.reopen(3000, 'minimum') IS NOT NULL AS reopened;
SELECT lockfence.issue('a') AS has_a_mark, lockfence.issue('newest') AS has_none;
SELECT code FROM try($$SELECT lockfence.present('a', 1002)$$);
SELECT lockfence.set_epoch(3, 'restored') IS NULL AS was_unset;
SELECT lockfence.issue('a') = lockfence.make_token(3, 1) AS first, lockfence.issue('a') = lockfence.make_token(3, 2) AS second;
SELECT code FROM try($$SELECT lockfence.present('a', 3001)$$);
-- ... from the transaction on that raises it
BEGIN;
SELECT lockfence.set_epoch(4, 'again');
SELECT lockfence.token_epoch(lockfence.issue('a')), lockfence.token_epoch(lockfence.issue('in-epoch'));
ROLLBACK;
SELECT lockfence.token_epoch(lockfence.issue('a')), lockfence.token_epoch(lockfence.issue('in-epoch'));

-- An epoch that has none left.
SELECT lockfence.reset_mark('full', lockfence.make_token(3, 281474976710655), 'the last of its epoch') IS NULL AS new;
SELECT * FROM try($$SELECT lockfence.issue('full')$$);
SELECT lockfence.reset_mark('full', lockfence.make_token(3, 281474976710654), 'the last but one') IS NOT NULL AS reset;
SELECT lockfence.token_revision(lockfence.issue('full'));
SELECT code FROM try($$SELECT lockfence.issue('full')$$);
SELECT lockfence.reset_mark('full', lockfence.make_token(7, 1), 'of a later epoch') IS NOT NULL AS reset;
SELECT code FROM try($$SELECT lockfence.issue('full')$$);
SELECT lockfence.set_epoch(32767, 'the last');
SELECT lockfence.issue('full') = lockfence.make_token(32767, 1);
SELECT lockfence.present('full', 9223372036854775807) IS NOT NULL AS presented;
SELECT code, detail FROM try($$SELECT lockfence.issue('full')$$);
SELECT lockfence.reset_mark('full', lockfence.make_token(32767, 5), 'was poisoned') IS NOT NULL AS reset;
SELECT lockfence.token_revision(lockfence.issue('full'));
-- ... without an epoch it does not slip into the next one
BEGIN;
DELETE FROM lockfence.state WHERE name IN ('epoch', 'minimum', 'floor');
SELECT lockfence.reset_mark('full', 281474976710655, 'the last of epoch 0') IS NOT NULL AS reset;
SELECT code FROM try($$SELECT lockfence.issue('full')$$);
ROLLBACK;

-- A row fence: the row is its own counter.
CREATE TABLE job (id int PRIMARY KEY, state text);
SELECT lockfence.attach('job');
INSERT INTO job VALUES (1, 'new', lockfence.make_token(32767, 600));
SELECT code FROM try($$UPDATE job SET state = 'none' WHERE id = 1$$);
UPDATE job SET fence = fence + 1, state = 'taken' WHERE id = 1 RETURNING lockfence.token_revision(fence);
UPDATE job SET state = 'done', fence = lockfence.make_token(32767, 601) WHERE id = 1;
UPDATE job SET fence = fence + 1, state = 'taken over' WHERE id = 1 RETURNING lockfence.token_revision(fence);
SELECT code FROM try($$UPDATE job SET state = 'late', fence = lockfence.make_token(32767, 601) WHERE id = 1$$);
SELECT state FROM job;

-- No validator is asked: what is given here was granted here.
CREATE FUNCTION no(text, lockfence.fence_token) RETURNS boolean LANGUAGE sql AS 'SELECT false';
ALTER DATABASE regress_lf_issue SET lockfence.validator = 'public.no(text, lockfence.fence_token)';
\c
SET client_min_messages = error;
SELECT code FROM try($$SELECT lockfence.present('asked', 9223372036854775807)$$);
SELECT lockfence.token_revision(lockfence.issue('asked'));
ALTER DATABASE regress_lf_issue RESET lockfence.validator;

-- A shut gate gives none.
UPDATE lockfence.state SET value = value + 1000 WHERE name LIKE 'timeline:%';
SELECT code, message FROM try($$SELECT lockfence.issue('a')$$);
SELECT lockfence.reopen(lockfence.make_token(32767, 500), 'looked over') IS NOT NULL AS reopened;
SELECT lockfence.token_revision(lockfence.issue('a'));

-- It is for those who hold locks.
CREATE ROLE regress_lf_issuer;
SET ROLE regress_lf_issuer;
SELECT code, message FROM try($$SELECT lockfence.issue('a')$$);
RESET ROLE;
GRANT EXECUTE ON FUNCTION lockfence.issue(text) TO PUBLIC;
SELECT severity, code, problem, advice FROM lockfence.verify() WHERE code = 'present_is_public';
REVOKE EXECUTE ON FUNCTION lockfence.issue(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lockfence.issue(text) TO regress_lf_issuer;
SET ROLE regress_lf_issuer;
SELECT lockfence.token_revision(lockfence.issue('a'));
RESET ROLE;
DROP OWNED BY regress_lf_issuer;
DROP ROLE regress_lf_issuer;

\c :home
DROP DATABASE regress_lf_issue;
