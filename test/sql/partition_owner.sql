-- Partitions of fenced tables, made by a role that may not execute the guard, or of tables that have a fence already.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE regress_partition_owner;
CREATE ROLE regress_partition_other;
CREATE SCHEMA test_partition_owner;
GRANT ALL ON SCHEMA test_partition_owner TO regress_partition_owner, regress_partition_other;
SET search_path = test_partition_owner;
SET ROLE regress_partition_owner;
CREATE TABLE event (id integer, month integer) PARTITION BY LIST (month);
CREATE TABLE event_1 PARTITION OF event FOR VALUES IN (1);
CREATE TABLE event_2 (id integer, month integer);
CREATE TABLE deep (id integer, month integer) PARTITION BY LIST (month);
CREATE TABLE deep_1 PARTITION OF deep FOR VALUES IN (1, 11) PARTITION BY LIST (id);
CREATE TABLE whole (id integer, month integer) PARTITION BY LIST (month);
CREATE TABLE parent (id integer);
RESET ROLE;

-- attach() says so at once, of any level; not of what PostgreSQL puts no guard on: statement guards, children
ALTER TABLE deep_1 OWNER TO regress_partition_other;
SELECT lockfence.attach('event', 'partition_owner:{id}', enforcement => 'advisory');
SELECT lockfence.attach('deep', token_column => 'token');
SELECT lockfence.attach('whole', 'partition_owner:whole');
SELECT lockfence.attach('parent', 'partition_owner:{id}');
-- ... and so does verify(), before it happens
SELECT target, severity, code, problem, remedy, advice FROM lockfence.verify()
WHERE code = 'partitions_blocked' AND target::text ~ '^(event|deep|whole|parent)' ORDER BY target::text;

-- What it was like: an outage at the end of the month, with a word on what to do
SET ROLE regress_partition_owner;
CREATE TABLE event_3 PARTITION OF event FOR VALUES IN (3);
ALTER TABLE event ATTACH PARTITION event_2 FOR VALUES IN (2);
CREATE TABLE IF NOT EXISTS event_1 PARTITION OF event FOR VALUES IN (1);
CREATE TABLE whole_1 PARTITION OF whole FOR VALUES IN (1);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE other (id integer, month integer) PARTITION BY LIST (month);
CREATE TABLE other_1 PARTITION OF other FOR VALUES IN (1);
SET ROLE regress_partition_other;
CREATE TABLE deep_1_1 PARTITION OF deep_1 FOR VALUES IN (1);
-- ... but what fails anyway has PostgreSQL's own error
CREATE TABLE event_4 PARTITION OF event FOR VALUES IN (4);
SET ROLE regress_partition_owner;
DO $$ BEGIN
	ALTER TABLE parent ATTACH PARTITION event_2 FOR VALUES IN (2);
EXCEPTION WHEN insufficient_privilege THEN
	RAISE;
WHEN invalid_object_definition OR wrong_object_type THEN	-- by PostgreSQL's version
	RAISE WARNING 'it is not partitioned';
END $$;
RESET ROLE;
-- A superuser makes them; the owner's rows go in.
CREATE TABLE event_3 PARTITION OF event FOR VALUES IN (3);
SET ROLE regress_partition_owner;
INSERT INTO event VALUES (1, 3);
RESET ROLE;

-- The owner gets the right, and then another owner does not have it.
GRANT EXECUTE ON FUNCTION lockfence.guard_row() TO regress_partition_owner;
SELECT target FROM lockfence.verify('event') WHERE code = 'partitions_blocked';
SET ROLE regress_partition_owner;
CREATE TABLE event_4 PARTITION OF event FOR VALUES IN (4);
RESET ROLE;
ALTER TABLE event OWNER TO regress_partition_other;
SELECT problem FROM lockfence.verify('event') WHERE code = 'partitions_blocked';
ALTER TABLE event OWNER TO regress_partition_owner;

-- A table that is fenced itself cannot become a partition of a fenced one; the hint says how it can.
SELECT lockfence.attach('event_2', 'partition_owner:{id}');
INSERT INTO lockfence.mark VALUES (7, now(), 'partition_owner:1');
BEGIN;
SELECT lockfence.present(8);
INSERT INTO event_2 VALUES (1, 2);
COMMIT;
ALTER TABLE event ATTACH PARTITION event_2 FOR VALUES IN (2);
BEGIN;
SELECT lockfence.detach('event_2');
ALTER TABLE event ATTACH PARTITION event_2 FOR VALUES IN (2);
SELECT lockfence.reconcile('event_2');
COMMIT;
SELECT enforcement, inherited, on_record FROM lockfence.fences WHERE target = 'event_2'::regclass;
-- ... whose guard has another name, can: it then has two
CREATE TABLE event_5 (id integer, month integer);
SELECT lockfence.attach('event_5', 'partition_owner:{id}');
ALTER TRIGGER "~lockfence_row" ON event_5 RENAME TO "~renamed";
ALTER TABLE event ATTACH PARTITION event_5 FOR VALUES IN (5);
SELECT code FROM lockfence.verify('event') WHERE target = 'event_5'::regclass AND code = 'guard_duplicate';
-- ... and a constant fence has statement guards, which stay
CREATE TABLE event_6 (id integer, month integer);
SELECT lockfence.attach('event_6', 'partition_owner:six');
ALTER TABLE event ATTACH PARTITION event_6 FOR VALUES IN (6);
DROP SCHEMA test_partition_owner CASCADE;
DROP OWNED BY regress_partition_owner, regress_partition_other;
DROP ROLE regress_partition_owner, regress_partition_other;
