-- A row that moves to another partition is judged by the fence of that one, however lenient the one before.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_lenient;
SET search_path = test_lenient;

-- Partitions with fences of their own: the first two lenient, each in its way.
CREATE TABLE deed (id integer, region text, note text, token lockfence.fence_token) PARTITION BY LIST (region);
CREATE TABLE deed_allow PARTITION OF deed FOR VALUES IN ('allow');
CREATE TABLE deed_advisory PARTITION OF deed FOR VALUES IN ('advisory');
CREATE TABLE deed_strict PARTITION OF deed FOR VALUES IN ('strict');
CREATE TABLE deed_presented (token lockfence.fence_token, note text, id integer, region text);
ALTER TABLE deed ATTACH PARTITION deed_presented FOR VALUES IN ('presented');
SELECT lockfence.attach('deed_allow', 'lenient:{id}', 'token', missing => 'allow'),
	lockfence.attach('deed_advisory', 'lenient:{id}', 'token', enforcement => 'advisory'),
	lockfence.attach('deed_strict', 'lenient:{id}', 'token'),
	lockfence.attach('deed_presented', 'lenient:{id}', 'token', accept => 'presented');
INSERT INTO deed VALUES (1, 'allow', 'new', 10), (2, 'advisory', 'new', 10);
CREATE VIEW shown AS SELECT tableoid::regclass AS partition, id, note, token FROM deed ORDER BY id;

-- ... without a token: what the row brings along was not shown
UPDATE deed SET region = 'strict' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE deed SET region = 'strict' WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
UPDATE deed SET region = 'presented' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
-- ... with one that is stale, in the column or presented
UPDATE deed SET region = 'strict', token = 9 WHERE id = 1;
UPDATE deed SET region = 'strict', token = 9 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present(9);
UPDATE deed SET region = 'strict' WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- ... that is none at all
UPDATE deed SET region = 'strict', token = NULL WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
-- ... in the column, where that is no proof; but to the fence before, which holds the resource by it
BEGIN;
UPDATE deed SET region = 'presented', token = 10 WHERE id = 1;
SELECT * FROM lockfence.presented();
ROLLBACK;
SELECT * FROM shown;
-- ... with one that passes
UPDATE deed SET region = 'strict', note = 'moved', token = 11 WHERE id = 1;
BEGIN;
SELECT lockfence.present(11);
UPDATE deed SET region = 'presented', note = 'moved' WHERE id = 2;
COMMIT;
SELECT * FROM shown;

-- The other way: the strict one wants a token, and then both have it.
UPDATE deed SET region = 'allow' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE deed SET region = 'allow', token = 12 WHERE id = 1;
UPDATE deed SET region = 'advisory', token = 12 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present('lenient:2', 12);
UPDATE deed SET region = 'advisory' WHERE id = 2;
COMMIT;
SELECT * FROM shown;
-- ... and on between lenient ones, unprotected, with the token as it was; then it is asked for again
UPDATE deed SET region = 'advisory' WHERE id = 1;
UPDATE deed SET region = 'allow' WHERE id = 2;
UPDATE deed SET region = 'strict' WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM shown;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'lenient:%' ORDER BY 1;

-- A DELETE and an INSERT are no move: the INSERT shows what it inserts.
BEGIN;
DELETE FROM deed WHERE id = 1;
INSERT INTO deed VALUES (1, 'strict', 'again', 12);
COMMIT;
WITH gone AS (DELETE FROM deed WHERE id = 2 RETURNING *)
INSERT INTO deed SELECT id, 'strict', note, token FROM gone;
SELECT * FROM shown;
-- ... nor are those of triggers between the halves, and they change nothing for the move
INSERT INTO deed VALUES (3, 'allow', 'new', 10), (4, 'allow', 'new', 10);
CREATE FUNCTION delete_other() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM test_lenient.deed WHERE id = 4;
	INSERT INTO test_lenient.deed VALUES (4, 'strict', 'by trigger', 10);
	RETURN coalesce(new, old);
END
$$;
CREATE TRIGGER delete_other BEFORE DELETE ON deed_allow FOR EACH ROW WHEN (old.id = 3) EXECUTE FUNCTION delete_other();
UPDATE deed SET region = 'strict' WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
UPDATE deed SET region = 'strict', token = 10 WHERE id = 3;
SELECT * FROM shown WHERE id > 2;
-- ... or forges what is shown
INSERT INTO deed VALUES (5, 'allow', 'new', 10);
CREATE FUNCTION forge() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	new.token := 10;
	RETURN new;
END
$$;
CREATE TRIGGER forge BEFORE INSERT ON deed_strict FOR EACH ROW EXECUTE FUNCTION forge();
UPDATE deed SET region = 'strict' WHERE id = 5;
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER forge ON deed_strict;
-- ... and a move by a trigger of a move
CREATE FUNCTION move_other() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE test_lenient.deed SET region = 'strict' WHERE id = 5;
	RETURN new;
END
$$;
CREATE TRIGGER move_other BEFORE INSERT ON deed_advisory FOR EACH ROW EXECUTE FUNCTION move_other();
UPDATE deed SET region = 'advisory', token = 10 WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present('lenient:5', 10);
UPDATE deed SET region = 'advisory', token = 10 WHERE id = 3;
COMMIT;
SELECT * FROM shown WHERE id > 2;

-- Row fences: the mark goes along, and is what the next fence compares with.
CREATE TABLE job (id integer, region text, note text) PARTITION BY LIST (region);
CREATE TABLE job_allow PARTITION OF job FOR VALUES IN ('allow');
CREATE TABLE job_advisory PARTITION OF job FOR VALUES IN ('advisory');
CREATE TABLE job_strict PARTITION OF job FOR VALUES IN ('strict');
ALTER TABLE job ADD fence lockfence.fence_token;
SELECT lockfence.attach('job_allow', missing => 'allow'), lockfence.attach('job_advisory', enforcement => 'advisory'),
	lockfence.attach('job_strict');
INSERT INTO job VALUES (1, 'allow', 'new', 10), (2, 'advisory', 'new', 10);
UPDATE job SET region = 'strict' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE job SET region = 'strict' WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
UPDATE job SET region = 'strict', fence = 9 WHERE id = 2;
\echo :LAST_ERROR_SQLSTATE
UPDATE job SET region = 'advisory' WHERE id = 1;
UPDATE job SET region = 'strict', fence = 11;
SELECT tableoid::regclass, * FROM job ORDER BY id;
-- ... used by one transaction only: the move is one use
SELECT lockfence.detach('job_strict');
SELECT lockfence.attach('job_strict', repeat => 'reject');
UPDATE job SET region = 'advisory', fence = 12 WHERE id = 1;
UPDATE job SET region = 'strict' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE job SET region = 'strict', fence = 13 WHERE id = 1;
UPDATE job SET note = 'again', fence = 13 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
SELECT tableoid::regclass, * FROM job ORDER BY id;
DROP SCHEMA test_lenient CASCADE;
