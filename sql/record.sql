-- ---------------------------------------------------------------- what was fenced, on record

-- A regclass is dumped by name, and follows a table that is renamed.  This one
-- is, too, and a dump that leaves a fenced table out can be restored: what is
-- the name of no table is 0.
CREATE TYPE lockfence._relation;
CREATE FUNCTION lockfence._relation_in(cstring) RETURNS lockfence._relation
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_relation_in';
COMMENT ON FUNCTION lockfence._relation_in(cstring) IS
'input of type lockfence._relation';
CREATE FUNCTION lockfence._relation_out(lockfence._relation) RETURNS cstring
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_relation_out';
COMMENT ON FUNCTION lockfence._relation_out(lockfence._relation) IS
'output of type lockfence._relation';
CREATE FUNCTION lockfence._relation_recv(internal) RETURNS lockfence._relation
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_relation_recv';
COMMENT ON FUNCTION lockfence._relation_recv(internal) IS
'binary input of type lockfence._relation, by name too';
CREATE FUNCTION lockfence._relation_send(lockfence._relation) RETURNS bytea
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_relation_send';
COMMENT ON FUNCTION lockfence._relation_send(lockfence._relation) IS
'binary output of type lockfence._relation, by name too';
CREATE TYPE lockfence._relation (
	INPUT = lockfence._relation_in, OUTPUT = lockfence._relation_out,
	RECEIVE = lockfence._relation_recv, SEND = lockfence._relation_send, LIKE = pg_catalog.oid);
COMMENT ON TYPE lockfence._relation IS
'a regclass that reads the name of a table that does not exist as 0, without an error';
CREATE CAST (lockfence._relation AS pg_catalog.oid) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (lockfence._relation AS pg_catalog.oid) IS 'to compare it';

CREATE TABLE lockfence.fenced (
	target lockfence._relation NOT NULL,
	arguments text[] COLLATE "C" NOT NULL,
	CONSTRAINT fenced_pkey PRIMARY KEY (target)
) USING heap;
COMMENT ON TABLE lockfence.fenced IS
'the record of what is fenced, beside the marks: each table that attach() or reconcile() has put on record, its partitions and children. A named fence rejects all writes to a table that is not on record (LF005): such a table came without its marks';
COMMENT ON COLUMN lockfence.fenced.target IS 'the table';
COMMENT ON COLUMN lockfence.fenced.arguments IS 'its fence, as the arguments of its guard declared it';

-- Not those of tables that are gone: their numbers would be others' elsewhere.
SELECT pg_catalog.pg_extension_config_dump('lockfence.fenced',
	'WHERE EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) target)');

REVOKE ALL ON lockfence.fenced FROM PUBLIC;
-- It says no more than the catalogs do.
GRANT SELECT ON lockfence.fenced TO PUBLIC;

CREATE FUNCTION lockfence._record_fence(target regclass)
RETURNS boolean
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'lockfence_record_fence';
COMMENT ON FUNCTION lockfence._record_fence(regclass) IS
'puts a table that has a guard on record; returns whether it was not on record before. For the table''s owner';

CREATE FUNCTION lockfence._forget_fence(target regclass)
RETURNS boolean
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'lockfence_forget_fence';
COMMENT ON FUNCTION lockfence._forget_fence(regclass) IS
'takes a table off the record of what is fenced; returns whether it was on record. For the table''s owner';

CREATE FUNCTION lockfence.guard_record() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_guard_record';
COMMENT ON FUNCTION lockfence.guard_record() IS
'trigger of lockfence.fenced: adds what DML brings, as in a data restore, to what is there, and makes every session notice';

CREATE FUNCTION lockfence.follow_partitions() RETURNS event_trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_follow_partitions';
COMMENT ON FUNCTION lockfence.follow_partitions() IS
'event trigger: puts a new partition on record with its parent if it is empty; a table that is attached with rows, or that was detached before, is not on record until reconcile()';

CREATE FUNCTION lockfence.follow_drops() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF to_regclass('lockfence.fenced') IS NOT NULL THEN
		DELETE FROM lockfence.fenced f
		USING pg_event_trigger_dropped_objects() d
		WHERE d.classid = 'pg_class'::regclass AND d.objsubid = 0 AND f.target = d.objid;
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence.follow_drops() IS
'event trigger: takes dropped tables off the record of what is fenced';

REVOKE ALL ON FUNCTION
	lockfence.guard_record(), lockfence.follow_partitions(), lockfence.follow_drops()
FROM PUBLIC;

CREATE TRIGGER "~lockfence_record" BEFORE INSERT OR UPDATE OR DELETE ON lockfence.fenced
FOR EACH ROW EXECUTE FUNCTION lockfence.guard_record();
ALTER TABLE lockfence.fenced ENABLE ALWAYS TRIGGER "~lockfence_record";

CREATE EVENT TRIGGER lockfence_partitions ON ddl_command_end
WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE')
EXECUTE FUNCTION lockfence.follow_partitions();
ALTER EVENT TRIGGER lockfence_partitions ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER lockfence_partitions IS 'puts partitions on record with their parents, or takes them off';

CREATE EVENT TRIGGER lockfence_drops ON sql_drop
WHEN TAG IN ('DROP TABLE', 'DROP SCHEMA', 'DROP OWNED', 'DROP EXTENSION')
EXECUTE FUNCTION lockfence.follow_drops();
ALTER EVENT TRIGGER lockfence_drops ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER lockfence_drops IS 'takes dropped tables off the record';
