-- verify(): guards that are absent, off, altered or out of reach.  Each hole is
-- made, found, mended by the remedy as it is printed or, where there is but advice, by
-- hand, and found no more.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA test_verify_guards;
SET search_path = test_verify_guards;

CREATE VIEW found AS
SELECT v.target, v.severity, v.code, v.problem, v.remedy, v.advice
FROM lockfence.verify() WITH ORDINALITY AS v (target, severity, code, problem, remedy, advice, place)
	JOIN pg_class c ON c.oid = v.target
WHERE c.relnamespace = 'test_verify_guards'::regnamespace
ORDER BY v.place;

-- What \gexec does, for what it would not print alike everywhere.
CREATE PROCEDURE mend() LANGUAGE plpgsql AS $$
DECLARE
	remedy text;
BEGIN
	FOR remedy IN SELECT f.remedy FROM found f WHERE f.remedy IS NOT NULL LOOP
		EXECUTE remedy;
	END LOOP;
END
$$;

-- What the advice says: the same fence anew.
CREATE PROCEDURE declare_anew(target regclass) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM lockfence.detach(target);
	PERFORM CASE target::text
		WHEN 'batch' THEN lockfence.attach('batch', resource => 'settle:{batch_id}', token_column => 'fence')
		WHEN 'job' THEN lockfence.attach('job', resource => $r$jobs/it's "nightly" \ é {{run}}$r$)
		WHEN 'item' THEN lockfence.attach('item')
		WHEN 'part' THEN lockfence.attach('part', resource => 'part:{k}', accept => 'presented', repeat => 'reject')
		WHEN 'whole' THEN lockfence.attach('whole', resource => 'whole') END;
END
$$;

CREATE TABLE batch (batch_id int PRIMARY KEY, state text);
CREATE TABLE job (id int PRIMARY KEY, note text);
CREATE TABLE item (id int PRIMARY KEY, state text);
CREATE TABLE part (k int, n int, state text) PARTITION BY LIST (k);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2) PARTITION BY LIST (n);
CREATE TABLE part_2_1 PARTITION OF part_2 FOR VALUES IN (1);
CREATE TABLE whole (k int) PARTITION BY LIST (k);
CREATE TABLE whole_1 PARTITION OF whole FOR VALUES IN (1);
CREATE TABLE parent (id int, state text);
CREATE TABLE child () INHERITS (parent);
SELECT lockfence.attach('batch', resource => 'settle:{batch_id}', token_column => 'fence');
SELECT lockfence.attach('job', resource => $$jobs/it's "nightly" \ é {{run}}$$);
SELECT lockfence.attach('item');
SELECT lockfence.attach('part', resource => 'part:{k}', accept => 'presented', repeat => 'reject');
SELECT lockfence.attach('whole', resource => 'whole');
SELECT lockfence.attach('parent', token_column => 'grant');

-- Clean fences of every kind.
SELECT * FROM found;
CREATE VIEW fences AS
SELECT target, kind, resource, token_column, accept, enforcement, missing, repeat, inherited, triggers
FROM lockfence.fences
WHERE target IN (SELECT oid FROM pg_class WHERE relnamespace = 'test_verify_guards'::regnamespace)
ORDER BY target::text COLLATE "C";
CREATE TABLE fences_before AS TABLE fences;

-- guard_disabled
ALTER TABLE batch DISABLE TRIGGER "~lockfence_row";
ALTER TABLE part DISABLE TRIGGER ALL;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;

-- guard_not_always: by hand, and as pg_dump --disable-triggers leaves it
ALTER TABLE item ENABLE REPLICA TRIGGER "~lockfence_row";
ALTER TABLE job DISABLE TRIGGER ALL;
ALTER TABLE job ENABLE TRIGGER ALL;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;

-- guard_missing: of each kind
DROP TRIGGER "~lockfence_row" ON batch;
DROP TRIGGER "~lockfence_statement" ON job;
DROP TRIGGER "~lockfence_truncate" ON item;
DROP TRIGGER "~lockfence_row" ON part;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;

-- guard_missing: all of them, as after a copy that took the table's name; the settings went with them
DROP TRIGGER "~lockfence_row" ON item;
DROP TRIGGER "~lockfence_truncate" ON item;
CREATE TABLE item_copy (LIKE item);
SELECT * FROM found;
SELECT lockfence.attach('item');
SELECT * FROM found;
DROP TABLE item_copy;

-- A table that was never fenced is found when it is asked for; so is a view.
CREATE TABLE plain (id int);
SELECT * FROM found;
SELECT * FROM lockfence.verify('plain') WHERE target = 'plain'::regclass;
SELECT * FROM lockfence.verify('found') WHERE target = 'found'::regclass;
SELECT severity, code, remedy FROM lockfence.verify(0) WHERE target = 0;

-- guard_update_of
DROP TRIGGER "~lockfence_row" ON batch;
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR DELETE OR UPDATE OF fence ON batch FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('resource=settle:{batch_id}', 'token_column=fence');
ALTER TABLE batch ENABLE ALWAYS TRIGGER "~lockfence_row";
SELECT * FROM found;
CALL declare_anew('batch');
SELECT * FROM found;

-- guard_when, on a parent and so on its partitions
DROP TRIGGER "~lockfence_row" ON part;
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON part FOR EACH ROW WHEN (false)
EXECUTE FUNCTION lockfence.guard_row('resource=part:{k}', 'accept=presented', 'repeat=reject');
ALTER TABLE part ENABLE ALWAYS TRIGGER "~lockfence_row";
SELECT * FROM found;
CALL declare_anew('part');
SELECT * FROM found;

-- guard_altered: not before every event, or not ours at all
DROP TRIGGER "~lockfence_row" ON batch;
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR DELETE ON batch FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('resource=settle:{batch_id}', 'token_column=fence');
ALTER TABLE batch ENABLE ALWAYS TRIGGER "~lockfence_row";
CREATE FUNCTION let_pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN coalesce(new, old); END';
DROP TRIGGER "~lockfence_row" ON item;
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON item FOR EACH ROW EXECUTE FUNCTION let_pass('token_column=fence');
ALTER TABLE item ENABLE ALWAYS TRIGGER "~lockfence_row";
SELECT * FROM found;
DROP TRIGGER "~lockfence_row" ON item;
CALL declare_anew('batch');
CALL declare_anew('item');
SELECT * FROM found;

-- guard_altered: two guards that differ; the stricter one is believed
UPDATE pg_trigger SET tgnargs = 3, tgargs = tgargs || 'enforcement=advisory\000'
WHERE tgrelid = 'batch'::regclass AND tgname = '~lockfence_row';
SELECT * FROM found;
CALL declare_anew('batch');
SELECT * FROM found;

-- guard_altered: arguments that declare no fence
UPDATE pg_trigger SET tgnargs = 0, tgargs = ''
WHERE tgrelid = 'batch'::regclass AND tgname = '~lockfence_row';
UPDATE pg_trigger SET tgnargs = 1, tgargs = 'resource=settle:{\000'
WHERE tgrelid = 'job'::regclass AND tgname = '~lockfence_truncate';
UPDATE pg_trigger SET tgnargs = 7
WHERE tgrelid = 'item'::regclass AND tgname = '~lockfence_row';
SELECT * FROM found;
CALL declare_anew('batch');
CALL declare_anew('job');
CALL declare_anew('item');
SELECT * FROM found;

-- guard_altered: an unknown setting, a word that is none, bytes that are no text
UPDATE pg_trigger SET tgnargs = 3, tgargs = tgargs || 'enforce=no\000'
WHERE tgrelid = 'batch'::regclass AND tgname = '~lockfence_row';
UPDATE pg_trigger SET tgnargs = 2, tgargs = tgargs || 'missing=maybe\000'
WHERE tgrelid = 'job'::regclass AND tgname = '~lockfence_statement';
UPDATE pg_trigger SET tgnargs = 1, tgargs = '\xff00'
WHERE tgrelid = 'item'::regclass AND tgname = '~lockfence_truncate';
UPDATE pg_trigger SET tgnargs = 4, tgargs = tgargs || 'missing=allow\000'
WHERE tgrelid = 'part_1'::regclass AND tgname = '~lockfence_row';
SELECT * FROM found;
CALL declare_anew('batch');
CALL declare_anew('job');
CALL declare_anew('item');
CALL declare_anew('part');
SELECT * FROM found;

-- guard_altered: of every guard, so that nothing tells the settings any more
UPDATE pg_trigger SET tgnargs = 1, tgargs = 'nonsense\000' WHERE tgrelid = 'whole_1'::regclass;
UPDATE pg_trigger SET tgnargs = 1, tgargs = 'nonsense\000' WHERE tgrelid = 'job'::regclass;
SELECT * FROM found;
CALL declare_anew('whole');
CALL declare_anew('job');
SELECT * FROM found;

-- guard_altered: guards of the wrong kind for the fence
DROP TRIGGER "~lockfence_statement" ON job;
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON job FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row($$resource=jobs/it's "nightly" \ é {{run}}$$);
ALTER TABLE job ENABLE ALWAYS TRIGGER "~lockfence_row";
SELECT * FROM found;
CALL declare_anew('job');
SELECT * FROM found;

-- guard_renamed
ALTER TRIGGER "~lockfence_row" ON batch RENAME TO guard;
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;

-- guard_renamed: all of them, so that detach() finds none
ALTER TRIGGER "~lockfence_row" ON batch RENAME TO guard;
ALTER TRIGGER "~lockfence_truncate" ON batch RENAME TO "other guard";
UPDATE pg_trigger SET tgattr = '1' WHERE tgrelid = 'batch'::regclass AND tgname = 'guard';
SELECT target, severity, code, advice FROM found;
CALL mend();
CALL declare_anew('batch');
SELECT * FROM found;

-- guard_renamed: to a name that makes it fire later than its own does
CREATE TRIGGER "~m" BEFORE UPDATE ON batch FOR EACH ROW EXECUTE FUNCTION let_pass();
ALTER TRIGGER "~lockfence_row" ON batch RENAME TO "~~~";
SELECT * FROM found;
DROP TRIGGER "~m" ON batch;
ALTER TRIGGER "~~~" ON batch RENAME TO "~lockfence_row";

-- guard_duplicate
CREATE TRIGGER again BEFORE INSERT OR UPDATE OR DELETE ON item FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('token_column=fence');
ALTER TABLE item ENABLE ALWAYS TRIGGER again;
SELECT * FROM found;
DROP TRIGGER again ON item;
SELECT * FROM found;

-- guard_missing: a new partition has the row guard from its parent, and no other
CREATE TABLE part_3 PARTITION OF part FOR VALUES IN (3);
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;

-- unfenced_leaf: a new partition under a statement guard
CREATE TABLE whole_2 PARTITION OF whole FOR VALUES IN (2);
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;

-- unfenced_child, and its child
CREATE TABLE late () INHERITS (child);
CREATE TABLE later () INHERITS (late);
SELECT * FROM found;
SELECT remedy FROM found \gexec
SELECT * FROM found;

-- Asked for a leaf alone, the fence is still that of its root.
CREATE TABLE whole_3 PARTITION OF whole FOR VALUES IN (3);
SELECT target, code FROM lockfence.verify('whole_3') WHERE target IS NOT NULL;
SELECT remedy FROM lockfence.verify('whole_3') WHERE target IS NOT NULL \gexec
SELECT target, code FROM lockfence.verify('whole_3') WHERE target IS NOT NULL;

-- unfenced_leaf: DETACH drops the clone, and the token column tells; guard_altered: attached with a fence of its own
ALTER TABLE whole DETACH PARTITION whole_3;
SELECT lockfence.detach('whole_3');
SELECT lockfence.attach('whole_3', resource => 'other');
ALTER TABLE whole ATTACH PARTITION whole_3 FOR VALUES IN (3);
SELECT * FROM found;
CALL declare_anew('whole');
SELECT * FROM found;

-- unfenced_parent
CREATE TABLE above (LIKE job);
ALTER TABLE job INHERIT above;
SELECT * FROM found;
ALTER TABLE job NO INHERIT above;
DROP TABLE above;

-- foreign_leaf, as a partition and as a child
CREATE FOREIGN DATA WRAPPER verify_fdw;
CREATE SERVER verify_server FOREIGN DATA WRAPPER verify_fdw;
CREATE FOREIGN TABLE whole_4 PARTITION OF whole FOR VALUES IN (4) SERVER verify_server;
CREATE FOREIGN TABLE elsewhere () INHERITS (parent) SERVER verify_server;
SELECT * FROM found;
ALTER TABLE whole DETACH PARTITION whole_4;
ALTER FOREIGN TABLE elsewhere NO INHERIT parent;
SELECT * FROM found;

-- After all of this the fences are what they were.
TABLE fences_before EXCEPT TABLE fences;
SELECT target FROM fences WHERE target NOT IN (SELECT target FROM fences_before);

SET client_min_messages = error;
DROP FOREIGN DATA WRAPPER verify_fdw CASCADE;
DROP SCHEMA test_verify_guards CASCADE;
