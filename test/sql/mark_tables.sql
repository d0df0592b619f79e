-- The tables of marks, which the fence writes to directly: what others would put
-- on them is refused, and where it is all the same, no mark is raised.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA test_mark_tables;
SET search_path = test_mark_tables;
SELECT lockfence.present('tables:a', 10);
CREATE FUNCTION copy_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION nothing(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE TABLE plain (resource text COLLATE "C");
CREATE TABLE parent (token lockfence.fence_token NOT NULL, advanced_at timestamptz NOT NULL, resource text COLLATE "C" NOT NULL);
CREATE TABLE family (LIKE parent) PARTITION BY LIST (resource);

-- Each with what the fence then does with a first token, and with one that equals the mark.
CREATE TABLE tried (place int GENERATED ALWAYS AS IDENTITY, command text, raises text, holds text);
INSERT INTO tried (command, raises, holds) VALUES
	('CREATE TRIGGER repack_trigger AFTER INSERT OR UPDATE OR DELETE ON lockfence.mark FOR EACH ROW EXECUTE FUNCTION copy_row()', 'LF009', 'yes'),
	('CREATE TRIGGER "~lockfence_last" BEFORE UPDATE ON lockfence.mark FOR EACH STATEMENT EXECUTE FUNCTION copy_row()', 'LF009', 'yes'),
	('CREATE TRIGGER truncated AFTER TRUNCATE ON lockfence.mark EXECUTE FUNCTION copy_row()', 'LF009', 'yes'),
	('CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON lockfence.mark DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION copy_row()', 'LF009', 'yes'),
	('CREATE TRIGGER repack_trigger AFTER INSERT OR UPDATE OR DELETE ON lockfence.state FOR EACH ROW EXECUTE FUNCTION copy_row()', 'yes', 'yes'),
	('CREATE RULE copied AS ON UPDATE TO lockfence.mark DO ALSO NOTHING', 'LF009', 'yes'),
	('CREATE POLICY hidden ON lockfence.mark USING (false)', 'yes', 'yes'),
	('ALTER TABLE lockfence.state ENABLE ROW LEVEL SECURITY', 'yes', 'yes'),
	('ALTER TABLE lockfence.mark FORCE ROW LEVEL SECURITY', 'yes', 'yes'),
	('CREATE INDEX expression ON lockfence.mark (nothing(resource))', 'LF009', 'yes'),
	('CREATE INDEX expression ON lockfence.state (lower(name))', 'yes', 'yes'),
	('CREATE INDEX partial ON lockfence.mark (resource) WHERE token > 10', 'LF009', 'yes'),
	('CREATE INDEX partial ON lockfence.mark USING hash (resource) WHERE token > 10', 'LF009', 'yes'),
	('ALTER TABLE lockfence.mark ADD CONSTRAINT excluded EXCLUDE USING hash (resource WITH =)', 'LF009', 'yes'),
	('ALTER TABLE lockfence.mark ADD CONSTRAINT late UNIQUE (resource) DEFERRABLE', 'LF009', 'yes'),
	('ALTER TABLE lockfence.mark ADD CONSTRAINT once UNIQUE (token, resource)', 'yes', 'yes'),
	('CREATE INDEX other ON lockfence.mark (token)', 'yes', 'yes'),
	('CREATE INDEX more ON lockfence.mark (resource) INCLUDE (token)', 'yes', 'yes'),
	('CREATE INDEX more ON lockfence.mark (resource, token)', 'yes', 'yes'),
	('ALTER TABLE lockfence.mark ADD CONSTRAINT low CHECK (resource <> ''tables:a'' OR token <> 12)', 'LF009', 'yes'),
	('ALTER TABLE lockfence.mark ADD CONSTRAINT low CHECK (token < 11) NOT VALID', 'LF009', 'yes'),
	('ALTER TABLE lockfence.state ADD CONSTRAINT low CHECK (value > 0) NOT VALID', 'yes', 'yes'),
	('ALTER TABLE plain ADD FOREIGN KEY (resource) REFERENCES lockfence.mark', 'LF009', 'yes'),
	('CREATE TABLE referring (resource text REFERENCES lockfence.mark)', 'LF009', 'yes'),
	('CREATE SCHEMA test_mark_tables_more CREATE TABLE referring (resource text REFERENCES lockfence.mark)', 'LF009', 'yes'),
	('CREATE UNLOGGED TABLE child () INHERITS (lockfence.mark)', 'yes', 'yes'),
	('ALTER TABLE lockfence.mark INHERIT parent', 'yes', 'yes'),
	('ALTER TABLE family ATTACH PARTITION lockfence.mark DEFAULT', 'LF009', 'yes'),
	('ALTER TABLE lockfence.mark SET UNLOGGED', 'LF009', 'yes'),
	('ALTER TABLE lockfence.mark ADD COLUMN note text', 'yes', 'yes'),
	('ALTER TABLE lockfence.mark ADD COLUMN note text NOT NULL DEFAULT 1', 'LF009', 'yes'),
	('ALTER TABLE lockfence.mark ADD COLUMN serial bigint GENERATED ALWAYS AS IDENTITY', 'LF009', 'yes'),
	('ALTER TABLE lockfence.mark ADD COLUMN twice bigint GENERATED ALWAYS AS (token * 2) STORED', 'LF009', 'yes'),
	('ALTER TABLE lockfence.mark ALTER COLUMN token TYPE numeric', '55000', '55000'),
	('ALTER TABLE lockfence.mark ALTER COLUMN resource TYPE varchar COLLATE "C"', '55000', '55000'),
	('ALTER TABLE lockfence.mark ALTER COLUMN resource TYPE text COLLATE "POSIX"', '55000', '55000'),
	('ALTER TABLE lockfence.state ALTER COLUMN name TYPE text COLLATE "POSIX"', '55000', '55000'),
	('ALTER TABLE lockfence.mark DROP CONSTRAINT mark_pkey; CREATE UNIQUE INDEX mark_pkey ON lockfence.mark (resource COLLATE "POSIX")', '55000', '55000'),
	('ALTER TABLE lockfence.mark DROP COLUMN advanced_at', '55000', '55000'),
	('ALTER TABLE lockfence.mark DROP COLUMN token', '55000', '55000'),
	('ALTER TABLE lockfence.state DROP COLUMN value CASCADE', '55000', '55000'),
	('ALTER TABLE lockfence.state ALTER COLUMN value TYPE integer', '55000', '55000'),
	('ALTER TABLE lockfence.state ADD COLUMN note text', 'yes', 'yes');

CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'yes';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;

-- The event triggers refuse them all.
SELECT command, outcome(command) FROM tried WHERE outcome(command) <> 'LF009' ORDER BY place;

-- A command within another has its own to answer for, and the outer one still has.
CREATE FUNCTION more_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	IF tg_tag = 'CREATE TRIGGER' THEN
		EXECUTE 'CREATE TABLE IF NOT EXISTS noted (id int)';
		BEGIN
			EXECUTE 'CREATE TABLE noted (id int)';
		EXCEPTION WHEN duplicate_table THEN
		END;
	END IF;
END
$$;
SET client_min_messages = error;
CREATE EVENT TRIGGER a_first ON ddl_command_end EXECUTE FUNCTION more_ddl();
CREATE TRIGGER repack_trigger AFTER UPDATE ON lockfence.mark FOR EACH ROW EXECUTE FUNCTION copy_row();
\echo :LAST_ERROR_SQLSTATE
CREATE TRIGGER repack_trigger AFTER UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION copy_row();
DROP TRIGGER repack_trigger ON plain;
DROP EVENT TRIGGER a_first;
DROP TABLE noted;
SET client_min_messages = warning;

-- One of each in full.
CREATE TRIGGER repack_trigger AFTER UPDATE ON lockfence.mark FOR EACH ROW EXECUTE FUNCTION copy_row();
\echo :LAST_ERROR_SQLSTATE
CREATE INDEX CONCURRENTLY slow ON lockfence.mark (resource);
CREATE POLICY hidden ON lockfence.mark USING (false);
SELECT count(*) FROM pg_index WHERE indrelid = 'lockfence.mark'::regclass;

-- Nothing keeps others' tables, and the extension's maintenance, from what they take.
CREATE TRIGGER repack_trigger AFTER UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION copy_row();
CREATE INDEX expression ON plain (nothing(resource)) WHERE resource > 'a';
CREATE POLICY hidden ON plain USING (false);
CREATE INDEX CONCURRENTLY slow ON plain (resource);
CREATE RULE copied AS ON UPDATE TO plain DO ALSO NOTHING;
ALTER TABLE plain ADD COLUMN note text NOT NULL;
REINDEX TABLE lockfence.mark;
REINDEX TABLE CONCURRENTLY lockfence.mark;
VACUUM FULL lockfence.mark;
CLUSTER lockfence.mark USING mark_pkey;
ALTER TABLE lockfence.mark SET WITHOUT CLUSTER;
CREATE INDEX another ON lockfence.mark (resource);
DROP INDEX lockfence.another;
CREATE STATISTICS lockfence.counted ON token, resource FROM lockfence.mark;
DROP STATISTICS lockfence.counted;
ALTER TABLE lockfence.mark SET (autovacuum_enabled = off);
ALTER TABLE lockfence.mark RESET (autovacuum_enabled);
SET client_min_messages = error;
CREATE PUBLICATION marks FOR TABLE lockfence.mark;
SET client_min_messages = warning;
DROP PUBLICATION marks;
SELECT lockfence.present('tables:a', 11), lockfence.present('tables:b', 1);

-- What verify() says of the tables of marks, and no more, for the time it takes.
CREATE VIEW findings_of_marks AS
SELECT * FROM lockfence._verify_mark_storage() UNION ALL SELECT * FROM lockfence._verify_foreign_things();

-- Where they have got there all the same: what the fence does, and what verify() says.
CREATE FUNCTION try(INOUT command text, OUT raises text, OUT first text, OUT holds text, OUT folds text, OUT findings text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'ALTER EVENT TRIGGER lockfence_before_ddl DISABLE';
	EXECUTE 'ALTER EVENT TRIGGER lockfence_after_ddl DISABLE';
	EXECUTE command;
	raises := outcome($try$SELECT lockfence.raise_mark('tables:a', 12, 'test')$try$);
	first := outcome($try$SELECT lockfence.present('tables:new', 1)$try$);
	holds := outcome($try$SELECT lockfence.present('tables:b', 1)$try$);
	folds := outcome($try$SELECT lockfence._fold_mark('tables:b', 1)$try$);
	findings := (SELECT string_agg(DISTINCT severity || ' ' || code, ', ')
		FROM findings_of_marks WHERE code ~ '^mark_');
	RAISE EXCEPTION USING ERRCODE = 'ZZ000', MESSAGE = concat_ws('|', raises, first, holds, folds, findings);
EXCEPTION WHEN SQLSTATE 'ZZ000' THEN
	SELECT p[1], p[2], p[3], p[4], p[5] INTO raises, first, holds, folds, findings FROM string_to_array(SQLERRM, '|') AS p;
END
$$;
CREATE TABLE outcomes AS SELECT t.place, t.raises AS expected_raises, t.holds AS expected_holds, o.* FROM tried t, try(t.command) o;
SELECT command, raises, first, holds, folds, findings FROM outcomes ORDER BY place;
SELECT count(*) FROM outcomes WHERE first <> expected_raises OR holds <> expected_holds;

-- The error in full, and what mends it: one thing after the other, past the event triggers.
BEGIN;
ALTER EVENT TRIGGER lockfence_after_ddl DISABLE;
SELECT severity, code, problem, remedy, advice FROM lockfence.verify('plain') WHERE code = 'ddl_guard';
CREATE TRIGGER repack_trigger AFTER UPDATE ON lockfence.mark FOR EACH ROW EXECUTE FUNCTION copy_row();
CREATE RULE copied AS ON UPDATE TO lockfence.mark DO ALSO NOTHING;
CREATE INDEX partial ON lockfence.mark (resource) WHERE token > 10;
ALTER TABLE plain ADD CONSTRAINT referring FOREIGN KEY (resource) REFERENCES lockfence.mark;
ALTER TABLE lockfence.mark ADD CONSTRAINT low CHECK (resource <> 'tables:a' OR token <> 12);
ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS;
CREATE TABLE unrelated (id int);
SAVEPOINT s;
UPDATE plain SET note = '';
SELECT lockfence.present('tables:a', 12);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
CREATE RULE more AS ON DELETE TO lockfence.mark DO ALSO NOTHING;
ROLLBACK TO s;
SELECT severity, code, problem, remedy, advice FROM lockfence.verify('plain') WHERE code ~ '^mark_foreign|ddl_guard';
ALTER TABLE lockfence.mark DROP CONSTRAINT low;
DROP INDEX lockfence.partial;
DROP RULE copied ON lockfence.mark;
DROP TRIGGER repack_trigger ON lockfence.mark;
ALTER TABLE plain DROP CONSTRAINT referring;
SELECT severity, code, problem, remedy, advice FROM lockfence.verify('plain') WHERE code ~ '^mark_foreign|ddl_guard';
SELECT lockfence.present('tables:a', 12);
ROLLBACK;

-- A session that has written notices what another one has done since.
ALTER EVENT TRIGGER lockfence_after_ddl DISABLE;
SELECT lockfence.present('tables:a', 13);
CREATE TRIGGER repack_trigger AFTER UPDATE ON lockfence.mark FOR EACH ROW EXECUTE FUNCTION copy_row();
SELECT lockfence.present('tables:a', 14);
SELECT lockfence.present('tables:a', 13);
SELECT lockfence.present('tables:a', 12);
DROP TRIGGER repack_trigger ON lockfence.mark;
SELECT lockfence.present('tables:a', 14);
ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS;

-- Where a superuser has renamed the schema, DDL on other tables is still possible.
BEGIN;
ALTER SCHEMA lockfence RENAME TO another;
CREATE TABLE unrelated (id int);
ROLLBACK;

-- The function is of use to an event trigger alone.
CREATE FUNCTION called() RETURNS void LANGUAGE c AS '$libdir/lockfence', 'lockfence_guard_ddl';
SELECT called();

DROP SCHEMA test_mark_tables CASCADE;
