-- A row that moves to another partition: an UPDATE, then a DELETE and an INSERT, each with its guard.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_move;
SET search_path = test_move;

-- A row fence keeps the mark in the row, so it goes along.
CREATE TABLE job (id integer, place text, note text) PARTITION BY LIST (place);
CREATE TABLE job_a PARTITION OF job FOR VALUES IN ('a');
CREATE TABLE job_b (note text, junk text, place text, id integer);
ALTER TABLE job_b DROP COLUMN junk;
ALTER TABLE job ATTACH PARTITION job_b FOR VALUES IN ('b');
SELECT lockfence.attach('job');
INSERT INTO job VALUES (1, 'a', 'new', 10);
-- ... by the column
UPDATE job SET place = 'b', fence = 10;
SELECT tableoid::regclass, * FROM job;
UPDATE job SET place = 'a', fence = 9;
\echo :LAST_ERROR_SQLSTATE
UPDATE job SET place = 'a', fence = 11;
SELECT tableoid::regclass, * FROM job;
-- ... by a presented token
BEGIN;
SELECT lockfence.present(12);
UPDATE job SET place = 'b';
SELECT tableoid::regclass, * FROM job;
COMMIT;
BEGIN;
SELECT lockfence.present(11);
UPDATE job SET place = 'a';
ROLLBACK;
-- ... not by what the row carries
UPDATE job SET place = 'a';
\echo :LAST_ERROR_SQLSTATE
DELETE FROM job;
\echo :LAST_ERROR_SQLSTATE
-- The DELETE half passes by its UPDATE's token; a DELETE of its own does not.
BEGIN;
UPDATE job SET note = 'stays', fence = 12;
DELETE FROM job;
ROLLBACK;
BEGIN;
UPDATE job SET place = 'a', fence = 12;
DELETE FROM job;
ROLLBACK;

-- missing => 'allow': an unprotected move leaves the mark as it was.
SELECT lockfence.detach('job');
SELECT lockfence.attach('job', missing => 'allow');
UPDATE job SET place = 'a', note = 'unprotected';
SELECT tableoid::regclass, * FROM job;
UPDATE job SET place = 'b', fence = 11;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present(13);
UPDATE job SET place = 'b';
COMMIT;
SELECT tableoid::regclass, * FROM job;
SELECT lockfence.detach('job');

-- accept => 'presented': what the row carries is no proof at its new place either.
SELECT lockfence.attach('job', accept => 'presented');
UPDATE job SET place = 'a', fence = 14;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present(14);
UPDATE job SET place = 'a', fence = 13;
SELECT tableoid::regclass, * FROM job;
COMMIT;
SELECT lockfence.detach('job');

-- Named fences: the resource of the row may move with it, or stay.
SELECT lockfence.attach('job', 'move:{id}', 'fence');
UPDATE job SET place = 'b', fence = 15;
BEGIN;
SELECT lockfence.present('move:1', 15);
UPDATE job SET place = 'a';
COMMIT;
UPDATE job SET place = 'b', fence = 14;
\echo :LAST_ERROR_SQLSTATE
UPDATE job SET place = 'b';
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.detach('job');
SELECT lockfence.attach('job', 'move:{place}', 'fence');
SELECT lockfence.present('move:b', 30);
UPDATE job SET place = 'b', fence = 29;
\echo :LAST_ERROR_SQLSTATE
UPDATE job SET place = 'b', fence = 30;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'move:_' ORDER BY resource;
BEGIN;
SELECT lockfence.present('move:b', 31);
UPDATE job SET place = 'a';
ROLLBACK;
BEGIN;
SELECT lockfence.present('move:b', 31);
SELECT lockfence.present('move:a', 32);
UPDATE job SET place = 'a';
SELECT tableoid::regclass, * FROM job;
ROLLBACK;
SELECT lockfence.detach('job');

-- Named, missing => 'allow': the token that the row carries along is not taken for one that is shown.
SELECT lockfence.attach('job', 'move:{id}', 'fence', missing => 'allow');
SELECT lockfence.present('move:1', 40);
UPDATE job SET place = 'a', note = 'unprotected';
SELECT tableoid::regclass, * FROM job;
SELECT token FROM lockfence.mark WHERE resource = 'move:1';
SELECT lockfence.detach('job');

-- writes of other triggers between the halves of an unprotected move: they are checked as ever
CREATE TABLE ledger (id integer, note text);
SELECT lockfence.attach('ledger', 'move:ledger-{id}');
SELECT lockfence.attach('job', 'move:{id}', 'fence', missing => 'allow');
CREATE FUNCTION keep_ledger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO test_move.ledger VALUES (1, TG_OP);
	RETURN coalesce(NEW, OLD);
END
$$;
CREATE TRIGGER early BEFORE INSERT ON job_b FOR EACH ROW EXECUTE FUNCTION keep_ledger();
UPDATE job SET place = 'b';
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER early ON job_b;
CREATE TRIGGER "~~late" BEFORE DELETE ON job_a FOR EACH ROW EXECUTE FUNCTION keep_ledger();
UPDATE job SET place = 'b';
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM ledger;
DROP TRIGGER "~~late" ON job_a;
-- ... and the move itself passes all the same
CREATE FUNCTION keep_notes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO test_move.notes VALUES (NEW.id);
	RETURN NEW;
END
$$;
CREATE TABLE notes (id integer);
SELECT lockfence.attach('notes', missing => 'allow');
CREATE TRIGGER early BEFORE INSERT ON job_b FOR EACH ROW EXECUTE FUNCTION keep_notes();
UPDATE job SET place = 'b', note = 'moved';
SELECT tableoid::regclass, * FROM job;

-- A trigger that updates another fenced table between the halves, or gives up doing so: the move is still
-- known for one, and a token that came with the row is none that was presented.
CREATE TABLE tally (id integer, moves integer);
INSERT INTO tally VALUES (1, 0);
SELECT lockfence.attach('tally', 'move:tally', 'fence', missing => 'allow');
CREATE FUNCTION keep_tally() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE test_move.tally SET moves = moves + 1;
	BEGIN
		UPDATE test_move.tally SET moves = 1 / 0;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	RETURN OLD;
END
$$;
CREATE TABLE parcel (id integer, place text) PARTITION BY LIST (place);
CREATE TABLE parcel_a PARTITION OF parcel FOR VALUES IN ('a');
CREATE TABLE parcel_b PARTITION OF parcel FOR VALUES IN ('b');
CREATE TRIGGER early BEFORE DELETE ON parcel_a FOR EACH ROW EXECUTE FUNCTION keep_tally();
SELECT lockfence.attach('parcel');
INSERT INTO parcel VALUES (1, 'a', 10);
UPDATE parcel SET place = 'b', fence = 10;
SELECT tableoid::regclass, * FROM parcel;
SELECT lockfence.detach('parcel');
SELECT lockfence.attach('parcel', 'move:to-{place}', 'fence', missing => 'allow');
INSERT INTO parcel VALUES (2, 'a', 10);
UPDATE parcel SET place = 'b' WHERE id = 2;
SELECT tableoid::regclass, * FROM parcel WHERE id = 2;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'move:to-%' ORDER BY 1;

-- A statement that moves some rows and changes others.
CREATE TABLE stock (id integer, place text, note text) PARTITION BY LIST (place);
CREATE TABLE stock_a PARTITION OF stock FOR VALUES IN ('a');
CREATE TABLE stock_b PARTITION OF stock FOR VALUES IN ('b');
SELECT lockfence.attach('stock');
INSERT INTO stock SELECT n, CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END, 'new', 10 FROM generate_series(1, 6) n;
UPDATE stock SET place = 'a', fence = CASE id WHEN 5 THEN 9 ELSE 11 END;
UPDATE stock SET place = 'a', fence = 11;
SELECT tableoid::regclass, count(*), min(fence) FROM stock GROUP BY 1;

-- A move whose INSERT half does not come: no later INSERT is taken for it.
CREATE TABLE crate (id integer, place text) PARTITION BY LIST (place);
CREATE TABLE crate_a PARTITION OF crate FOR VALUES IN ('a');
CREATE TABLE crate_b PARTITION OF crate FOR VALUES IN ('b');
CREATE FUNCTION drop_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RETURN CASE WHEN new.id <> 1 THEN new END;
END
$$;
CREATE TRIGGER drop_first BEFORE INSERT ON crate_b FOR EACH ROW EXECUTE FUNCTION drop_first();
SELECT lockfence.attach('crate', 'move:crate-{id}', 'fence', missing => 'allow');
INSERT INTO crate VALUES (1, 'a'), (2, 'a');
SELECT lockfence.raise_mark('move:crate-3', 20, 'test');
BEGIN;
UPDATE crate SET place = 'b';
INSERT INTO crate VALUES (3, 'b', 10);
ROLLBACK;
BEGIN;
UPDATE crate SET place = 'b' WHERE id = 1;
INSERT INTO crate VALUES (3, 'b', 10);
ROLLBACK;
-- ... within one statement, either
WITH moved AS (UPDATE crate SET place = 'b' WHERE id = 1 RETURNING id)
INSERT INTO crate SELECT 3, 'b', 10 FROM (SELECT count(*) FROM moved) one;

-- An UPDATE that a later trigger cancels, and a DELETE of its row: an INSERT into another table is no half of a move,
-- though a row has moved from the same partition.
CREATE TABLE bin (id integer, place text) PARTITION BY LIST (place);
CREATE TABLE bin_a PARTITION OF bin FOR VALUES IN ('a');
CREATE TABLE bin_b PARTITION OF bin FOR VALUES IN ('b');
CREATE TABLE loose (id integer, place text);
SELECT lockfence.attach('bin'), lockfence.attach('loose', 'move:loose-{id}', 'fence');
INSERT INTO bin VALUES (1, 'a', 10), (2, 'a', 10);
CREATE FUNCTION cancel() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE TRIGGER "~~late" BEFORE UPDATE ON bin_a FOR EACH ROW WHEN (new.id = 2) EXECUTE FUNCTION cancel();
BEGIN;
UPDATE bin SET place = 'b', fence = 10 WHERE id = 1;
UPDATE bin SET place = 'b', fence = 10 WHERE id = 2;
WITH gone AS (DELETE FROM bin WHERE id = 2 RETURNING id)
INSERT INTO loose SELECT id, 'a' FROM gone;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

DROP SCHEMA test_move CASCADE;
