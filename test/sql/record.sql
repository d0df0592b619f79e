-- lockfence.fenced: what was fenced is on record, and a fenced table that came without its record is sealed.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE ROLE regress_lf_record_owner;
CREATE SCHEMA test_record;
GRANT EXECUTE ON FUNCTION lockfence.guard_row() TO regress_lf_record_owner;	-- as for any trigger
GRANT USAGE, CREATE ON SCHEMA test_record TO regress_lf_record_owner;
SET search_path = test_record;

CREATE VIEW recorded AS
SELECT c.oid::regclass AS target, f.arguments
FROM lockfence.fenced f JOIN pg_class c ON c.oid = f.target
WHERE c.relnamespace = 'test_record'::regnamespace
ORDER BY c.oid::regclass::text COLLATE "C";
-- A fence as a restore, or an engine that copies tables, makes it: guards, and nothing else.
CREATE FUNCTION copy_guards(original regclass, copy regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	guard pg_trigger;
BEGIN
	FOR guard IN SELECT * FROM pg_trigger WHERE tgrelid = original AND tgname LIKE '~lockfence%' AND tgparentid = 0 LOOP
		EXECUTE replace(pg_get_triggerdef(guard.oid), format(' ON %s ', (
				SELECT format('%I.%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
				WHERE c.oid = original)),
			format(' ON %s ', copy));
		EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', copy, guard.tgname);
	END LOOP;
END
$$;
-- What comes of a statement: its SQLSTATE, or "passed".  It is rolled back.
CREATE FUNCTION outcome(statement text, token bigint DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF token IS NOT NULL THEN
		PERFORM lockfence.present(token);
	END IF;
	EXECUTE statement;
	RAISE EXCEPTION USING ERRCODE = 'PASSD';
EXCEPTION
	WHEN SQLSTATE 'PASSD' THEN RETURN 'passed';
	WHEN OTHERS THEN RETURN SQLSTATE;
END
$$;

-- attach() puts a table on record, and detach() takes it off.
CREATE TABLE item (id integer PRIMARY KEY, note text);
CREATE TABLE job (id integer PRIMARY KEY, note text);
CREATE TABLE doc (id integer PRIMARY KEY, note text);
CREATE TABLE hint (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'record:{id}', 'token', accept => 'presented');
SELECT lockfence.attach('job', 'record:job');
SELECT lockfence.attach('doc');
SELECT lockfence.attach('hint', 'record:hint-{id}', 'token', enforcement => 'advisory');
SELECT target, arguments[:3] FROM recorded;
SELECT lockfence.detach('item');
SELECT target FROM recorded;
SELECT lockfence.attach('item', 'record:{id}', 'token');
SELECT target, arguments FROM recorded WHERE target = 'item'::regclass;
BEGIN;
SELECT lockfence.present(10);
INSERT INTO item VALUES (1, 'new');
INSERT INTO job VALUES (1, 'new');
INSERT INTO doc VALUES (1, 'new');
INSERT INTO hint VALUES (1, 'new');
COMMIT;

-- Copies have guards, and no record.  Every write to them is refused, with whatever token.
CREATE TABLE item_copy (LIKE item INCLUDING ALL);
CREATE TABLE job_copy (LIKE job INCLUDING ALL);
CREATE TABLE doc_copy (LIKE doc INCLUDING ALL);
CREATE TABLE hint_copy (LIKE hint INCLUDING ALL);
INSERT INTO item_copy TABLE item;
INSERT INTO doc_copy TABLE doc;
SELECT copy_guards('item', 'item_copy'), copy_guards('job', 'job_copy'), copy_guards('doc', 'doc_copy'),
	copy_guards('hint', 'hint_copy');
SELECT target, kind, on_record FROM lockfence.fences
WHERE target IN (SELECT oid FROM pg_class WHERE relnamespace = 'test_record'::regnamespace) ORDER BY target::text COLLATE "C";
INSERT INTO item_copy VALUES (2, 'new', 20);
SELECT statement, outcome(statement, 20) FROM (VALUES
	('INSERT INTO item_copy VALUES (2)'),
	('INSERT INTO item_copy VALUES (1) ON CONFLICT (id) DO UPDATE SET note = ''x'''),
	('UPDATE item_copy SET note = ''x'''),
	('UPDATE item_copy SET token = 20'),
	('DELETE FROM item_copy'),
	('TRUNCATE item_copy'),
	('SELECT lockfence.guarded_update(''item_copy'', ''{"id": 1}'', ''{"note": "x"}'', 20)'),
	('SELECT lockfence.guarded_update(''item_copy'', ''{"id": 7}'', ''{"note": "x"}'', 20)'),
	('SELECT lockfence.guarded_delete(''item_copy'', ''{"id": 7}'', 20)'),
	('INSERT INTO job_copy VALUES (1)'),
	('UPDATE job_copy SET note = ''x'' WHERE false'),
	('DELETE FROM job_copy'),
	('TRUNCATE job_copy')
) AS s (statement);
-- Nothing of that reached a mark; and again in a session that knows the fences by now.
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'record:%' ORDER BY 1;
SELECT outcome('UPDATE item_copy SET note = ''x''', 20), outcome('UPDATE item SET note = ''x''', 20),
	outcome('UPDATE item_copy SET note = ''x''', 20);
-- A row fence has its marks in its rows, an advisory one reports, and the bypass is one.
SELECT outcome('UPDATE doc_copy SET note = ''x''', 10), outcome('UPDATE doc_copy SET note = ''x''', 9);
SET client_min_messages = log;
INSERT INTO hint_copy VALUES (1, 'new', 20);
SELECT lockfence.guarded_update('hint_copy', '{"id": 1}', '{"note": "guarded"}', 21);
SET client_min_messages = warning;
-- ... once for each write, and no mark goes up
SELECT * FROM hint_copy;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'record:hint%';
SET lockfence.bypass = on;
SELECT outcome('DELETE FROM item_copy');
RESET lockfence.bypass;
-- What only asks is answered.
SELECT lockfence.resource_of('item_copy', i) FROM item_copy i;

-- verify() finds them.
SELECT target, severity, code, problem FROM lockfence.verify()
WHERE code IN ('not_on_record', 'marks_missing') AND target::text ~ '_copy$' ORDER BY target::text COLLATE "C";

-- reconcile() unseals, from the end of its transaction on and not before.
BEGIN;
SELECT lockfence.reconcile('item_copy');
SELECT outcome('UPDATE item_copy SET note = ''x''', 20);
ROLLBACK;
SELECT outcome('UPDATE item_copy SET note = ''x''', 20);
BEGIN;
SAVEPOINT s;
SELECT lockfence.reconcile('item_copy');
SELECT outcome('UPDATE item_copy SET note = ''x''', 20);
ROLLBACK TO s;
SELECT outcome('UPDATE item_copy SET note = ''x''', 20);
COMMIT;
SELECT lockfence.reconcile('item_copy'), lockfence.reconcile('job_copy'), lockfence.reconcile('hint_copy');
SELECT outcome('UPDATE item_copy SET note = ''x''', 20), outcome('UPDATE item_copy SET note = ''x''', 9),
	outcome('TRUNCATE job_copy', 10), outcome('TRUNCATE job_copy', 9);
SELECT lockfence.reconcile('item_copy');
SELECT action, resource, before, after, reason FROM lockfence.admin_log WHERE reason LIKE 'test_record.%' ORDER BY id;
SELECT target, code FROM lockfence.verify() WHERE code = 'not_on_record' AND target::text ~ '_copy$';

-- A temporary table comes from nowhere else.
CREATE TEMP TABLE short (LIKE item);
SELECT copy_guards('item', 'pg_temp.short');
SELECT outcome('INSERT INTO pg_temp.short VALUES (1)', 20);
SELECT lockfence.reconcile('pg_temp.short');
SELECT count(*) FROM lockfence.fenced WHERE target = 'pg_temp.short'::regclass;
DROP TABLE pg_temp.short;

-- A guard that is dropped is missed, on a fence without a token column too.
DROP TRIGGER "~lockfence_statement" ON job;
DROP TRIGGER "~lockfence_truncate" ON job;
SELECT target, severity, code, problem FROM lockfence.verify() WHERE target = 'job'::regclass AND severity = 'error';
-- It was meant so, ...
SELECT lockfence.detach('job');
SELECT target, code FROM lockfence.verify() WHERE target = 'job'::regclass AND severity = 'error';
SELECT lockfence.detach('job');
-- ... and then not.
SELECT lockfence.attach('job', 'record:job');
SELECT outcome('DELETE FROM job', 10), outcome('DELETE FROM job', 9);

-- Names are no more than names.
ALTER TABLE item RENAME TO thing;
CREATE SCHEMA test_record_other;
ALTER TABLE thing SET SCHEMA test_record_other;
SELECT outcome('UPDATE test_record_other.thing SET note = ''x''', 10);
SELECT target FROM lockfence.fenced WHERE target = 'test_record_other.thing'::regclass;
ALTER TABLE test_record_other.thing RENAME TO item;
ALTER TABLE test_record_other.item SET SCHEMA test_record;
-- What is dropped is off the record.
CREATE TABLE test_record_other.gone (LIKE item);
SELECT lockfence.attach('test_record_other.gone', 'record:gone');
CREATE TABLE gone_by_itself (LIKE item);
SELECT lockfence.attach('gone_by_itself', 'record:gone');
CREATE TABLE numbers AS SELECT oid FROM pg_class WHERE relname IN ('gone', 'gone_by_itself');
SELECT count(*) FROM lockfence.fenced WHERE target IN (SELECT oid FROM numbers);
DROP TABLE gone_by_itself;
DROP SCHEMA test_record_other CASCADE;
SELECT count(*) FROM lockfence.fenced WHERE target IN (SELECT oid FROM numbers);

-- Partitions: one that is made is empty, and on record with its parent, for any role that may make it.
CREATE TABLE part (k text, id integer, PRIMARY KEY (k, id)) PARTITION BY LIST (k);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
SELECT lockfence.attach('part', 'record:part-{id}', 'token');
ALTER TABLE part OWNER TO regress_lf_record_owner;
ALTER TABLE part_a OWNER TO regress_lf_record_owner;
SET ROLE regress_lf_record_owner;
CREATE TABLE part_b PARTITION OF part FOR VALUES IN ('b');
CREATE TABLE part_c PARTITION OF part FOR VALUES IN ('c') PARTITION BY RANGE (id);
CREATE TABLE part_c1 PARTITION OF part_c FOR VALUES FROM (0) TO (100);
RESET ROLE;
SET session_replication_role = replica;
CREATE TABLE part_d PARTITION OF part FOR VALUES IN ('d');
RESET session_replication_role;
SELECT target FROM recorded WHERE target::text LIKE 'part%';
INSERT INTO part VALUES ('a', 1, 10), ('b', 1, 10), ('c', 1, 10), ('d', 1, 10);
-- ... so is one that is attached without rows, with all of its own partitions.
CREATE TABLE part_e (LIKE part INCLUDING ALL);
ALTER TABLE part ATTACH PARTITION part_e FOR VALUES IN ('e');
CREATE TABLE part_f (LIKE part INCLUDING ALL) PARTITION BY RANGE (id);
CREATE TABLE part_f1 PARTITION OF part_f FOR VALUES FROM (0) TO (100);
ALTER TABLE part ATTACH PARTITION part_f FOR VALUES IN ('f');
SELECT outcome('INSERT INTO part VALUES (''e'', 1, 10), (''f'', 1, 10)');
-- One with rows has them from elsewhere, where their marks may be.
CREATE TABLE part_g (LIKE part INCLUDING ALL);
INSERT INTO part_g VALUES ('g', 7, 50);
ALTER TABLE part ATTACH PARTITION part_g FOR VALUES IN ('g');
CREATE TABLE part_h (LIKE part INCLUDING ALL) PARTITION BY RANGE (id);
CREATE TABLE part_h1 PARTITION OF part_h FOR VALUES FROM (0) TO (100);
CREATE TABLE part_h2 PARTITION OF part_h FOR VALUES FROM (100) TO (200);
INSERT INTO part_h1 VALUES ('h', 8, 50);
ALTER TABLE part ATTACH PARTITION part_h FOR VALUES IN ('h');
SELECT outcome('INSERT INTO part VALUES (''g'', 7, 20)'), outcome('INSERT INTO part VALUES (''h'', 1, 20)'),
	outcome('INSERT INTO part VALUES (''h'', 101, 20)'), outcome('INSERT INTO part VALUES (''a'', 2, 20)');
-- IF NOT EXISTS changes nothing, for neither.
CREATE TABLE IF NOT EXISTS part_g PARTITION OF part FOR VALUES IN ('g');
CREATE TABLE IF NOT EXISTS part_a PARTITION OF part FOR VALUES IN ('a');
SELECT outcome('INSERT INTO part VALUES (''g'', 7, 60)'), outcome('INSERT INTO part VALUES (''a'', 2, 60)');
SELECT target, code FROM lockfence.verify('part') WHERE target IS NOT NULL AND code IN ('not_on_record', 'marks_missing');
-- Where others have lost their marks, no remedy puts these on record along the way.
SET lockfence.bypass = on;
INSERT INTO part VALUES ('a', 9, 90);
RESET lockfence.bypass;
SELECT code, remedy IS NULL AS has_no_remedy FROM lockfence.verify('part') WHERE code IN ('marks_missing') AND target = 'part'::regclass;
SELECT lockfence.reconcile('part_a');
SELECT lockfence.reconcile('part_g');
SELECT outcome('INSERT INTO part VALUES (''g'', 7, 20)'), outcome('INSERT INTO part VALUES (''g'', 6, 60)'),
	outcome('INSERT INTO part VALUES (''h'', 1, 60)');
SELECT lockfence.reconcile('part');
SELECT outcome('INSERT INTO part VALUES (''h'', 8, 20)'), outcome('INSERT INTO part VALUES (''h'', 101, 20)');
-- One call is enough for a family that came without its record, and the hint names it: the topmost that is fenced.
BEGIN;
DELETE FROM lockfence.fenced WHERE target IN (SELECT relid FROM pg_partition_tree('part'));
SAVEPOINT before;
INSERT INTO part VALUES ('c', 1, 60);
ROLLBACK TO before;
SELECT lockfence.reconcile('part');
SELECT outcome('INSERT INTO part VALUES (''c'', 2, 60)'), outcome('INSERT INTO part VALUES (''h'', 101, 60)');
ROLLBACK;
BEGIN;
CREATE TABLE open (k text, id integer) PARTITION BY LIST (k);
CREATE TABLE open_a PARTITION OF open FOR VALUES IN ('a');
SELECT lockfence.attach('open_a', 'record:open-{id}');
DELETE FROM lockfence.fenced WHERE target = 'open_a'::regclass;
INSERT INTO open VALUES ('a', 1);
ROLLBACK;
-- A partition that was detached keeps no guard but that of TRUNCATE, which detach() takes off.
BEGIN;
ALTER TABLE part DETACH PARTITION part_a;
SELECT outcome('UPDATE part_a SET id = id + 100'), outcome('TRUNCATE part_a');
SELECT code, problem, advice FROM lockfence.verify('part_a') WHERE code = 'not_on_record';
SELECT lockfence.detach('part_a');
SELECT outcome('TRUNCATE part_a');
ROLLBACK;
-- One that is detached can be written without a fence, and is not trusted when it comes back.
ALTER TABLE part DETACH PARTITION part_b;
SELECT target FROM recorded WHERE target = 'part_b'::regclass;
UPDATE part_b SET token = 70;
ALTER TABLE part ATTACH PARTITION part_b FOR VALUES IN ('b');
SELECT outcome('INSERT INTO part VALUES (''b'', 1, 60)');
SELECT lockfence.reconcile('part_b');
SELECT outcome('INSERT INTO part VALUES (''b'', 1, 60)'), outcome('UPDATE part_b SET token = 70');
-- Without its event triggers the record does not follow.
ALTER EVENT TRIGGER lockfence_partitions DISABLE;
ALTER EVENT TRIGGER lockfence_drops ENABLE;
SELECT severity, problem, remedy FROM lockfence.verify() WHERE code = 'ddl_guard';
SELECT remedy FROM lockfence.verify() WHERE code = 'ddl_guard' \gexec
SELECT count(*) FROM lockfence.verify() WHERE code = 'ddl_guard';
-- Under a parent that is not on record no partition is.
DELETE FROM lockfence.fenced WHERE target = 'part'::regclass;
CREATE TABLE part_i PARTITION OF part FOR VALUES IN ('i');
SELECT outcome('INSERT INTO part VALUES (''i'', 1, 80)'), outcome('INSERT INTO part VALUES (''a'', 2, 80)');
SELECT lockfence.reconcile('part');
SELECT outcome('INSERT INTO part VALUES (''i'', 1, 80)');

-- A constant fence has one mark, which is there if the parent's is.  A fence of a leaf's own is another matter.
CREATE TABLE whole (k text, id integer) PARTITION BY LIST (k);
SELECT lockfence.attach('whole', 'record:whole');
CREATE TABLE whole_a (LIKE whole);
INSERT INTO whole_a VALUES ('a', 1);
ALTER TABLE whole ATTACH PARTITION whole_a FOR VALUES IN ('a');
CREATE TABLE whole_b (LIKE whole);
SELECT copy_guards('job', 'whole_b');
ALTER TABLE whole ATTACH PARTITION whole_b FOR VALUES IN ('b');
SELECT target FROM recorded WHERE target::text LIKE 'whole%';
SELECT copy_guards('whole', 'whole_a');
SELECT outcome('DELETE FROM whole_a', 10), outcome('DELETE FROM whole_b', 10);
-- A leaf that is fenced by itself stays so, whatever becomes of its kin.
CREATE TABLE plain (k text, id integer) PARTITION BY LIST (k);
CREATE TABLE plain_a (LIKE plain);
SELECT lockfence.attach('plain_a', 'record:plain-{id}', 'token');
INSERT INTO plain_a VALUES ('a', 1, 10);
ALTER TABLE plain ADD COLUMN token lockfence.fence_token;
ALTER TABLE plain ATTACH PARTITION plain_a FOR VALUES IN ('a');
ALTER TABLE plain DETACH PARTITION plain_a;
SELECT outcome('UPDATE plain_a SET token = 9'), outcome('UPDATE plain_a SET token = 10');

-- Looking it up takes no lock of SERIALIZABLE.
CREATE TABLE apart (LIKE item INCLUDING ALL);
SELECT lockfence.attach('apart', 'record:apart-{id}', 'token');
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO apart VALUES (1, 'new', 10);
SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock'
	AND relation IN ('lockfence.fenced'::regclass, 'lockfence.fenced_pkey'::regclass);
ROLLBACK;

-- The record by DML, as a restore and a superuser write it.
DELETE FROM lockfence.fenced WHERE target = 'item'::regclass;
SELECT outcome('UPDATE item SET note = ''x''', 10);
INSERT INTO lockfence.fenced VALUES ('test_record.item', '{}');
SELECT outcome('UPDATE item SET note = ''x''', 10);
INSERT INTO lockfence.fenced VALUES ('test_record.item', '{again}'), ('test_record.nothing', '{}'), ('nowhere.nothing', '{}'),
	('4294967295', '{}'), ('-', '{}');
SELECT arguments FROM recorded WHERE target = 'item'::regclass;
SELECT count(*) FROM lockfence.fenced WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = target);
UPDATE lockfence.fenced SET arguments = '{}' WHERE target = 'item'::regclass;
BEGIN;
TRUNCATE lockfence.fenced;
SELECT outcome('UPDATE item SET note = ''x''', 10);
ROLLBACK;
SELECT outcome('UPDATE item SET note = ''x''', 10);

-- Nothing of others is put on it, past which it is written.
SELECT outcome('CREATE INDEX late ON lockfence.fenced ((arguments[1]))'),
	outcome('CREATE TRIGGER log AFTER INSERT ON lockfence.fenced FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()');

-- It is the table's owner who may put it there, as it is who may attach() it.
CREATE TABLE theirs (LIKE item_copy);
SELECT copy_guards('item', 'theirs');
SET ROLE regress_lf_record_owner;
SELECT lockfence._record_fence('theirs');
SELECT lockfence._forget_fence('item');
SELECT lockfence.reconcile('theirs');
INSERT INTO lockfence.fenced VALUES ('test_record.theirs', '{}');
DELETE FROM lockfence.fenced;
SELECT count(*) > 0 AS may_read FROM lockfence.fenced;
RESET ROLE;
SELECT outcome('INSERT INTO theirs VALUES (1)', 10);
SELECT lockfence._record_fence(NULL), lockfence._record_fence('recorded'), lockfence._record_fence('numbers');
SELECT lockfence._record_fence(1);
SELECT lockfence.follow_partitions();
SELECT lockfence.guard_record();

DROP SCHEMA test_record CASCADE;
REVOKE EXECUTE ON FUNCTION lockfence.guard_row() FROM regress_lf_record_owner;
DROP ROLE regress_lf_record_owner;
SELECT count(*) FROM lockfence.fenced WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = target);
