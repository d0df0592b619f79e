-- Ambient tokens that are compared with no mark: told at commit, in a transaction that has written.
CREATE SCHEMA test_unchecked;
SET search_path = test_unchecked;
SET lockfence.track = on;
CREATE TABLE job (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('job');
CREATE TABLE item (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('item', 'unchecked:{id}', missing => 'allow');
CREATE TABLE observed (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('observed', 'unchecked:observed', enforcement => 'advisory');
CREATE TABLE free (n integer);
INSERT INTO job VALUES (1, 'active', 5);
INSERT INTO item VALUES (1, 'active');
SELECT lockfence.present('unchecked:1', 5);
SELECT lockfence.present('unchecked:observed', 5);
\set QUIET on
\pset tuples_only on
-- the default: a warning, after which the transaction commits
BEGIN;
SELECT lockfence.present(4);
UPDATE job SET state = 'failed' WHERE id = 1 AND state = 'gone';
INSERT INTO free VALUES (1);
COMMIT;
SELECT count(*) FROM free;
SET lockfence.unchecked_token = error;
-- refused: nothing of it remains
BEGIN;
SELECT lockfence.present(4);
UPDATE job SET state = 'failed' WHERE id = 1 AND state = 'gone';
INSERT INTO free VALUES (2);
COMMIT;
SELECT count(*) FROM free;
-- ignored, also for one transaction
BEGIN;
SET LOCAL lockfence.unchecked_token = ignore;
SELECT lockfence.present(4);
INSERT INTO free VALUES (3);
COMMIT;
-- without a write there is nothing to tell: only read, or rolled back
BEGIN;
SELECT lockfence.present(4);
UPDATE job SET state = 'failed' WHERE id = 1 AND state = 'gone';
SELECT count(*) FROM free;
COMMIT;
BEGIN;
SELECT lockfence.present(4);
INSERT INTO free VALUES (4);
ROLLBACK;
-- compared with the mark of a row, of a name, for another row than the one that the holder meant
BEGIN;
SELECT lockfence.present(5);
UPDATE job SET state = 'active' WHERE id = 1;
INSERT INTO free VALUES (5);
COMMIT;
BEGIN;
SELECT lockfence.present(5);
UPDATE item SET state = 'active' WHERE id = 1;
INSERT INTO free VALUES (6);
COMMIT;
-- ... by present(resource, token), before or after
BEGIN;
SELECT lockfence.present('unchecked:1', 5);
SELECT lockfence.present(5);
INSERT INTO free VALUES (7);
COMMIT;
BEGIN;
SELECT lockfence.present(5);
INSERT INTO free VALUES (8);
SELECT lockfence.present('unchecked:1', 5);
COMMIT;
-- ... but not another token, even if that advances
BEGIN;
SELECT lockfence.present(5);
SELECT lockfence.present('unchecked:2', 6);
COMMIT;
-- a row that is new has no mark: an INSERT into a row fence compares nothing, one into a named fence does
BEGIN;
SELECT lockfence.present(4);
INSERT INTO job VALUES (2, 'active');
COMMIT;
BEGIN;
SELECT lockfence.present(7);
INSERT INTO item VALUES (2, 'active');
COMMIT;
-- an advisory fence compares as well, and reports
BEGIN;
SELECT lockfence.present(4);
INSERT INTO observed VALUES (1, 'active');
COMMIT;
-- each token of the transaction counts, replaced or not, presented twice or once
BEGIN;
SELECT lockfence.present(4);
SELECT lockfence.present(5);
UPDATE job SET state = 'active' WHERE id = 1;
COMMIT;
BEGIN;
SELECT lockfence.present(5);
UPDATE job SET state = 'active' WHERE id = 1;
SELECT lockfence.present(5);
COMMIT;
BEGIN;
SELECT lockfence.present(5);
UPDATE job SET state = 'active' WHERE id = 1;
SELECT lockfence.present(4);
COMMIT;
BEGIN;
SELECT lockfence.present(5);
SELECT lockfence.present(6);
UPDATE job SET state = 'active' WHERE id = 1;
SELECT lockfence.present('unchecked:1', 5);
COMMIT;
-- with ROLLBACK TO go the hold and the lock, so the comparison does not count
BEGIN;
SELECT lockfence.present(6);
SAVEPOINT s;
UPDATE job SET state = 'active' WHERE id = 1;
ROLLBACK TO s;
INSERT INTO free VALUES (9);
COMMIT;
BEGIN;
SELECT lockfence.present(5);
SAVEPOINT s;
UPDATE item SET state = 'active' WHERE id = 1;
ROLLBACK TO s;
INSERT INTO free VALUES (9);
COMMIT;
-- ... but it does if the savepoint is released, and a token goes with the savepoint as well
BEGIN;
SELECT lockfence.present(6);
SAVEPOINT s;
UPDATE job SET state = 'active' WHERE id = 1;
RELEASE s;
INSERT INTO free VALUES (10);
COMMIT;
BEGIN;
SELECT lockfence.present(6);
UPDATE job SET state = 'active' WHERE id = 1;
SAVEPOINT s;
SELECT lockfence.present(4);
ROLLBACK TO s;
INSERT INTO free VALUES (11);
COMMIT;
BEGIN;
SAVEPOINT s;
SELECT lockfence.present(4);
RELEASE s;
INSERT INTO free VALUES (12);
COMMIT;
-- a deferred trigger may still write
CREATE FUNCTION touch_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE test_unchecked.job SET state = 'touched' WHERE id = 1;
	RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON free DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION touch_job();
BEGIN;
SELECT lockfence.present(6);
INSERT INTO free VALUES (13);
COMMIT;
-- the token of a guarded function is not an ambient one
SELECT lockfence.guarded_update('job', '{"id": 99}', '{"state": "x"}', 4);
SELECT n FROM free ORDER BY n;
RESET lockfence.unchecked_token;
-- (an unloaded library counts nothing)
SELECT coalesce(bool_and(advisory >= 1 AND unchecked >= 8), true) FROM lockfence.stats WHERE target IS NULL;
SELECT coalesce(bool_and(target IS NULL AND resource IS NULL AND token > 0 AND mark IS NULL), true) FROM lockfence.refusals WHERE code = 'LF010';
DROP SCHEMA test_unchecked CASCADE;
