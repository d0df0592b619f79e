-- fence_is_intact(), fences_are_intact(), survives_zombie(), and each way in which a fence gets a gap
SET client_min_messages = warning;
BEGIN;
CREATE EXTENSION IF NOT EXISTS lockfence_pgtap CASCADE;
CREATE SCHEMA harm;
SET LOCAL search_path = harm, public;

-- Table harm.NAME with a row 1 and a mark of 43, fenced.
CREATE FUNCTION make_table(name text, kind text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %I (id bigint PRIMARY KEY, state text) PARTITION BY RANGE (id)', name);
	EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (0) TO (100)', name || '_0', name);
	EXECUTE format('INSERT INTO %I VALUES (1, ''new'')', name);
	PERFORM lockfence.attach(name::regclass, CASE kind WHEN 'template' THEN name || ':{id}' WHEN 'constant' THEN name END);
	IF kind = 'row' THEN
		EXECUTE format('UPDATE %I SET fence = 43', name);
	END IF;
END
$$;

CREATE TABLE gap (name text, kind text, act text, code text, lets_pass boolean, survives boolean);
INSERT INTO gap VALUES
	('removed', 'template', 'DROP TRIGGER "~lockfence_row" ON %I', 'guard_missing', true, false),
	('removed', 'constant', 'DROP TRIGGER "~lockfence_statement" ON %I', 'guard_missing', true, false),
	('detached', 'row', 'SELECT lockfence.detach(%L)', 'guard_missing', true, false),
	('detached', 'constant', 'SELECT lockfence.detach(%L)', 'guard_missing', true, false),
	('disabled', 'row', 'ALTER TABLE %I DISABLE TRIGGER "~lockfence_row"; ALTER TABLE %1$I_0 DISABLE TRIGGER "~lockfence_row"',
		'guard_disabled', true, false),
	('disabled', 'constant', 'ALTER TABLE %I DISABLE TRIGGER ALL', 'guard_disabled', true, false),
	('replica', 'template', 'ALTER TABLE %I ENABLE REPLICA TRIGGER "~lockfence_row"; ALTER TABLE %1$I_0 ENABLE REPLICA TRIGGER "~lockfence_row"',
		'guard_not_always', true, false),
	('origin', 'template', 'ALTER TABLE %I ENABLE TRIGGER ALL; ALTER TABLE %1$I_0 ENABLE TRIGGER ALL', 'guard_not_always', false, false),
	('origin', 'constant', 'ALTER TABLE %I ENABLE TRIGGER USER', 'guard_not_always', false, false),
	('altered_when', 'constant', 'DROP TRIGGER "~lockfence_statement" ON %I;
		CREATE TRIGGER "~lockfence_statement" BEFORE INSERT OR UPDATE OR DELETE ON %1$I WHEN (false)
		EXECUTE FUNCTION lockfence.guard_statement(''resource=%1$s'')', 'guard_when', true, false),
	('altered_settings', 'template', 'DROP TRIGGER "~lockfence_row" ON %I;
		CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON %1$I FOR EACH ROW
		EXECUTE FUNCTION lockfence.guard_row(''resource=%1$s:{id}'', ''enforcement=advisory'')', 'guard_altered', true, false),
	('later_trigger', 'row', 'CREATE TRIGGER "~~" BEFORE UPDATE ON %I FOR EACH ROW
		EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'later_trigger', false, true),
	('new_partition', 'constant', 'CREATE TABLE %I_1 PARTITION OF %1$I FOR VALUES FROM (100) TO (200)', 'unfenced_leaf', false, true),
	('new_partition', 'template', 'CREATE TABLE %I_1 PARTITION OF %1$I FOR VALUES FROM (100) TO (200)', 'guard_missing', false, true);

CREATE FUNCTION harm(d gap) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	name text := d.name || '_' || d.kind;
	resource text := CASE d.kind WHEN 'template' THEN name || ':1' WHEN 'constant' THEN name END;
	write text := format('UPDATE %I SET state = ''late''', name);
BEGIN
	PERFORM make_table(name, d.kind);
	RETURN QUERY SELECT * FROM check_test(fence_is_intact(name), true, name || ', whole: fence_is_intact',
		format('The fence of table %s should be intact', name), '');
	RETURN QUERY SELECT * FROM check_test(refuses_stale(write, resource, 42), true, name || ', whole: refuses_stale', NULL, '');
	RETURN QUERY SELECT * FROM check_test(survives_zombie(name, '{"id": 1}', '{"state": "late"}'), true,
		name || ', whole: survives_zombie', format('A late holder should be refused by table %s, whichever way it comes', name), '');
	EXECUTE format(d.act, name);
	RETURN QUERY SELECT * FROM check_test(fence_is_intact(name), false, name || ': fence_is_intact', NULL,
		' *error: ' || d.code || ': .*\n *(mend it|decide): +', true);
	RETURN QUERY SELECT * FROM check_test(refuses_stale(write, resource, 42), NOT d.lets_pass, name || ': refuses_stale', NULL,
		CASE WHEN d.lets_pass THEN 'caught: no exception' ELSE '^$' END, true);
	RETURN QUERY SELECT * FROM check_test(survives_zombie(name, '{"id": 1}', '{"state": "late"}'), d.survives,
		name || ': survives_zombie', NULL, CASE WHEN d.survives THEN '^$'
			ELSE ' *UPDATE.*: a stale write passed\n *UPDATE .*error: ' || d.code END, true);
END
$$;

SELECT plan(212);
SELECT harm(d) FROM gap d;

SELECT * FROM check_test(fence_is_intact('absent'), false, 'fence_is_intact(absent)', NULL, '    table absent does not exist');
SELECT * FROM check_test(fences_are_intact(), false, 'fences_are_intact(gaps)',
	'Every fence of the database should be intact', 'error: guard_disabled: .*error: guard_not_always: ', true);
SELECT * FROM check_test(fences_are_intact('all of them'), false, 'fences_are_intact(description)', 'all of them');
SELECT * FROM check_test(survives_zombie('absent', '{"id": 1}', '{"state": "late"}', 'no table'), false,
	'survives_zombie(absent)', 'no table', '    table absent does not exist');
SELECT * FROM check_test(survives_zombie('replica_template', '{"id": 2}', '{"state": "late"}'), false,
	'survives_zombie(no row)', NULL, 'the drill could not be played: P0002: the drill found no row', true);

-- the row is in a partition that the fence does not reach
INSERT INTO new_partition_constant_1 VALUES (100, 'new');
SELECT * FROM check_test(survives_zombie('new_partition_constant', '{"id": 100}', '{"state": "late"}'), false,
	'survives_zombie(new partition)', NULL, '^    UPDATE of the partition: a stale write passed\n.*unfenced_leaf', true);

-- the finding comes with the statement that mends it
DO $$
DECLARE
	finding record;
BEGIN
	FOR finding IN SELECT remedy FROM lockfence.verify('new_partition_constant') WHERE remedy IS NOT NULL LOOP
		EXECUTE finding.remedy;
	END LOOP;
END
$$;
SELECT fence_is_intact('new_partition_constant', 'Mended as the diagnostics said');
SELECT survives_zombie('new_partition_constant', '{"id": 100}', '{"state": "late"}', 'and it holds');
SELECT * FROM finish();
ROLLBACK;
