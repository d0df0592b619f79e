-- Privileges: PUBLIC may use the schema and the functions that only read.  The
-- administrator grants those that can change a mark or make a fence.

DO $$
BEGIN
	IF (SELECT nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'lockfence')
		<> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
		RAISE EXCEPTION 'schema "lockfence" belongs to another role'
			USING HINT = 'Its owner could create objects in it. Drop the schema, or make the role that creates the extension its owner.';
	END IF;
END
$$;

-- Default privileges may have given others more, and PUBLIC less.
DO $$
DECLARE
	grantee oid;
BEGIN
	FOR grantee IN
		SELECT a.grantee FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a
		WHERE n.nspname = 'lockfence' AND a.grantee <> n.nspowner
	LOOP
		EXECUTE pg_catalog.format('REVOKE ALL ON SCHEMA lockfence FROM %s',
			CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(grantee)) END);
	END LOOP;
END
$$;
GRANT USAGE ON SCHEMA lockfence TO PUBLIC;
COMMENT ON SCHEMA lockfence IS 'refuses the writes of stale lock holders by fencing token';
