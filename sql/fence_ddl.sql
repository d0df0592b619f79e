-- ---------------------------------------------------------------- DDL under a grant

CREATE TABLE lockfence.ddl_fence (
	resource text COLLATE "C" NOT NULL,
	CONSTRAINT ddl_fence_pkey PRIMARY KEY (resource)
) USING heap;
COMMENT ON TABLE lockfence.ddl_fence IS
'the resource that DDL in this database needs a grant of, as fence_ddl() has put it on record; no row: DDL is not fenced';
COMMENT ON COLUMN lockfence.ddl_fence.resource IS 'the name of the resource, as its lock is named';

SELECT pg_catalog.pg_extension_config_dump('lockfence.ddl_fence', '');

REVOKE ALL ON lockfence.ddl_fence FROM PUBLIC;
-- A session that is to present the token needs the name.
GRANT SELECT ON lockfence.ddl_fence TO PUBLIC;

CREATE FUNCTION lockfence.admit_ddl() RETURNS event_trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_admit_ddl';
COMMENT ON FUNCTION lockfence.admit_ddl() IS
'event trigger: lets DDL pass in a transaction that has presented the token of its resource, and refuses it with LF001 or LF002 otherwise; see fence_ddl()';

-- They are the database's, and not the extension's: pg_dump then restores them when all else is there, which takes DDL.
CREATE FUNCTION lockfence._drop_ddl_triggers()
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	old record;
	dropped boolean := false;
BEGIN
	FOR old IN SELECT evtname FROM pg_event_trigger WHERE evtfoid = 'lockfence.admit_ddl()'::regprocedure LOOP
		EXECUTE format('DROP EVENT TRIGGER %I', old.evtname);
		dropped := true;
	END LOOP;
	RETURN dropped;
END
$$;
COMMENT ON FUNCTION lockfence._drop_ddl_triggers() IS
'drops the event triggers of fence_ddl(); returns whether there were any';

CREATE FUNCTION lockfence.fence_ddl(resource text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	present text;
BEGIN
	LOCK TABLE lockfence.ddl_fence IN SHARE ROW EXCLUSIVE MODE;
	SELECT d.resource INTO present FROM lockfence.ddl_fence d;
	IF FOUND THEN
		RAISE EXCEPTION 'DDL in this database is already fenced'
			USING ERRCODE = 'duplicate_object', DETAIL = format('Its resource is "%s".', lockfence._visible(present)),
				HINT = 'Use lockfence.unfence_ddl() first to change that.';
	END IF;
	-- on record first, so that the fence can make the name that is checked then
	INSERT INTO lockfence.ddl_fence VALUES (coalesce(resource, ''));
	PERFORM lockfence._check_name(resource);
	PERFORM lockfence._drop_ddl_triggers();
	CREATE EVENT TRIGGER lockfence_ddl_start ON ddl_command_start EXECUTE FUNCTION lockfence.admit_ddl();
	CREATE EVENT TRIGGER lockfence_ddl_end ON ddl_command_end EXECUTE FUNCTION lockfence.admit_ddl();
	ALTER EVENT TRIGGER lockfence_ddl_start ENABLE ALWAYS;
	ALTER EVENT TRIGGER lockfence_ddl_end ENABLE ALWAYS;
	PERFORM lockfence._log('fence_ddl', resource, NULL, NULL, 'DDL needs a grant of the resource');
END
$$;
COMMENT ON FUNCTION lockfence.fence_ddl(text) IS
'fences DDL in this database: each command needs a grant of the resource, presented by name in its transaction; LF002 without, LF001 with a stale token. Temporary relations, REFRESH MATERIALIZED VIEW and REINDEX need none. Logged. Example: SELECT lockfence.fence_ddl(''migrations'')';

CREATE FUNCTION lockfence.unfence_ddl()
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	present text;
BEGIN
	LOCK TABLE lockfence.ddl_fence IN SHARE ROW EXCLUSIVE MODE;
	DELETE FROM lockfence.ddl_fence RETURNING ddl_fence.resource INTO present;
	IF NOT lockfence._drop_ddl_triggers() AND present IS NULL THEN
		RAISE EXCEPTION 'DDL in this database is not fenced' USING ERRCODE = 'undefined_object';
	END IF;
	PERFORM lockfence._log('unfence_ddl', present, NULL, NULL, 'DDL needs no grant any more');
END
$$;
COMMENT ON FUNCTION lockfence.unfence_ddl() IS
'takes the fence off DDL in this database, which needs no grant of its resource any more; the mark stays. Logged';

REVOKE ALL ON FUNCTION lockfence.admit_ddl(), lockfence._drop_ddl_triggers(),
	lockfence.fence_ddl(text), lockfence.unfence_ddl()
FROM PUBLIC;
