-- Privileges: the schema and what only reads are open to everybody.  What can
-- move a mark or make a fence is granted by the administrator.

DO $$
BEGIN
	IF (SELECT nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'lockfence')
		<> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
		RAISE EXCEPTION 'schema "lockfence" belongs to another role'
			USING HINT = 'Its owner could plant objects in it. Drop it, or have it owned by the role that creates the extension.';
	END IF;
END
$$;

GRANT USAGE ON SCHEMA lockfence TO PUBLIC;
COMMENT ON SCHEMA lockfence IS 'refuses the writes of stale lock holders by fencing token';
