-- What a database may have of lockfence when it is updated: every kind of fence, marks, a floor, an epoch and
-- an audit log; and what its holders try.  SQL of 1.0, the oldest version.
SET client_min_messages = warning;
CREATE SCHEMA life;
SET search_path = life;
-- of another extension: its functions are in the schema as well
CREATE FUNCTION lockfence._of_another() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION knows(text, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE TABLE batch (id int PRIMARY KEY, note text);
CREATE TABLE job (id int PRIMARY KEY, note text);
CREATE TABLE doc (id int PRIMARY KEY, note text);
CREATE TABLE once (id int PRIMARY KEY, note text);
CREATE TABLE tally (id int PRIMARY KEY, note text);
CREATE TABLE part (k int, note text) PARTITION BY LIST (k);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
SELECT lockfence.attach('batch', 'batch-{id}', 'fence', validator => 'knows(text, bigint)'),
	lockfence.attach('job', 'jobs/nightly'),
	lockfence.attach('doc'),
	lockfence.attach('once', 'once', repeat => 'reject'),
	lockfence.attach('tally', 'tally-{id}', enforcement => 'advisory', missing => 'allow'),
	lockfence.attach('part', 'part-{k}', 'fence', accept => 'presented');

SELECT lockfence.set_epoch(1, 'the first epoch');
CREATE FUNCTION token(revision int) RETURNS bigint LANGUAGE sql AS 'SELECT lockfence.make_token(1, revision)';
SELECT lockfence.present('long gone', token(5));
SELECT lockfence.prune('0');
SELECT lockfence.raise_mark('forced', token(30), 'its holder was lost');
INSERT INTO batch VALUES (1, 'new', token(20));
INSERT INTO doc VALUES (1, 'new', token(20));
BEGIN;
SELECT lockfence.present(token(20));
INSERT INTO job VALUES (1, 'new');
INSERT INTO once VALUES (1, 'new');
INSERT INTO tally VALUES (1, 'new');
INSERT INTO part VALUES (1, 'new');
COMMIT;

CREATE TABLE attempt (what text, wanted text, statement text);
INSERT INTO attempt VALUES
	('a stale token in the column', 'LF001', 'UPDATE batch SET fence = token(19)'),
	('a stale token presented', 'LF001', 'SELECT lockfence.present(token(19)); UPDATE batch SET note = ''late'''),
	('a stale token for its resource', 'LF001', 'SELECT lockfence.present(''batch-1'', token(19))'),
	('a stale token on a constant fence', 'LF001', 'SELECT lockfence.present(token(19)); DELETE FROM job'),
	('a stale token on a row fence', 'LF001', 'UPDATE doc SET fence = token(19)'),
	('a token used twice on a single-use fence', 'LF001', 'SELECT lockfence.present(token(20)); DELETE FROM once'),
	('a stale token in a partition', 'LF001', 'SELECT lockfence.present(token(19)); DELETE FROM part_1'),
	('a stale token of guarded_update()', 'LF001',
		'SELECT lockfence.guarded_update(''batch'', ''{"id": 1}'', ''{"note": "late"}'', token(19))'),
	('a stale token of guarded_delete()', 'LF001', 'SELECT lockfence.guarded_delete(''doc'', ''{"id": 1}'', token(19))'),
	('a token below the floor', 'LF001', 'SELECT lockfence.present(''never seen'', token(4))'),
	('a token below a raised mark', 'LF001', 'SELECT lockfence.present(''forced'', token(29))'),
	('a token of an older epoch', 'LF001', 'SELECT lockfence.present(''new'', 1000)'),
	('a token of an epoch to come', 'LF004', 'SELECT lockfence.present(''new'', lockfence.make_token(2, 1))'),
	('no token', 'LF002', 'UPDATE batch SET note = ''late'''),
	('two tokens', 'LF006', 'SELECT lockfence.present(''batch-1'', token(20)); UPDATE batch SET fence = token(21)'),
	('no token at all', 'LF003', 'SELECT lockfence.present(0)'),
	('TRUNCATE', 'LF009', 'TRUNCATE batch'),
	('an equal token', 'accepted', 'UPDATE batch SET fence = token(20)'),
	('a newer token', 'accepted', 'SELECT lockfence.present(token(21));
		UPDATE batch SET note = ''x''; UPDATE job SET note = ''x''; DELETE FROM once; DELETE FROM part'),
	('a newer token of guarded_update()', 'accepted',
		'SELECT lockfence.guarded_update(''doc'', ''{"id": 1}'', ''{"note": "x"}'', token(21))'),
	('a stale token on an advisory fence', 'accepted', 'SELECT lockfence.present(token(19)); DELETE FROM tally'),
	('a new fence', 'accepted', 'CREATE TABLE more (id int); SELECT lockfence.attach(''more'', ''more-{id}'')'),
	('a fence taken off', 'accepted', 'SELECT lockfence.detach(''job''); DELETE FROM job'),
	('administration', 'accepted', 'SELECT lockfence.raise_mark(''batch-1'', token(40), ''a reason'');
		SELECT lockfence.reset_mark(''batch-1'', token(20), ''a reason''); SELECT lockfence.prune(''0'')');

CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RAISE SQLSTATE 'LFEND';
EXCEPTION
	WHEN SQLSTATE 'LFEND' THEN
		RETURN 'accepted';
	WHEN OTHERS THEN
		RETURN SQLSTATE;
END
$$;
