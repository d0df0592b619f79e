-- ---------------------------------------------------------------- privileges

CREATE FUNCTION lockfence._own_objects(extensions name[] DEFAULT '{lockfence,lockfence_lease}')
RETURNS TABLE (id oid, catalog oid, kind text, name text, owner oid, acl aclitem[], initial aclitem[])
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH object (catalog, id, kind, name, owner, acl, letter) AS MATERIALIZED (
		SELECT p.tableoid, p.oid, 'FUNCTION', p.oid::regprocedure::text, p.proowner, p.proacl, 'f'::"char"
		FROM pg_proc p WHERE p.pronamespace = 'lockfence'::regnamespace
		UNION ALL
		SELECT c.tableoid, c.oid, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
			lockfence._relation_name(c.oid), c.relowner, c.relacl, CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char"
		FROM pg_class c WHERE c.relnamespace = 'lockfence'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
		UNION ALL
		SELECT t.tableoid, t.oid, 'TYPE', t.oid::regtype::text, t.typowner, t.typacl, 'T'::"char"
		FROM pg_type t WHERE t.typnamespace = 'lockfence'::regnamespace
			AND (t.typtype <> 'c' AND t.typelem = 0 OR t.typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c'))
	)
	SELECT o.id, o.catalog, o.kind, o.name, o.owner, coalesce(o.acl, acldefault(o.letter, o.owner)), i.initprivs
	FROM object o
		JOIN pg_depend d ON d.classid = o.catalog AND d.objid = o.id AND d.objsubid = 0 AND d.deptype = 'e'
		JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
		LEFT JOIN pg_init_privs i ON i.classoid = o.catalog AND i.objoid = o.id AND i.objsubid = 0
	WHERE e.extname = ANY (extensions)
$$;
COMMENT ON FUNCTION lockfence._own_objects(name[]) IS
'the functions, tables, views, sequences and types of the extensions with their privileges, and those that the extension left on them where it has granted or revoked any';
