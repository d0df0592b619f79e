-- ---------------------------------------------------------------- privileges

-- Default privileges (ALTER DEFAULT PRIVILEGES) of the role that runs this script have given to others, or kept from
-- PUBLIC, what the parts before do not speak of.  So here, behind all parts, whatever is new gets what the parts mean.
-- They have granted or revoked where PostgreSQL has put initial privileges on record: of a function PUBLIC has then
-- what they left it, and of a table PUBLIC, or else pg_monitor, what they may read.  Of all else PUBLIC has what PostgreSQL
-- gives it, and others have nothing.  What was there before this script keeps what administrators have granted.

CREATE FUNCTION lockfence._own_objects()
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
	WHERE e.extname = 'lockfence'
$$;
COMMENT ON FUNCTION lockfence._own_objects() IS
'the functions, tables, views, sequences and types of the extension with their privileges, and those that the extension left on them where it has granted or revoked any';

CREATE FUNCTION lockfence._settle_privileges()
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	old text[] := current_setting('lockfence_script.old');
	open text[] := current_setting('lockfence_script.open');
	step text;
BEGIN
	FOR step IN
		SELECT format('GRANT ALL ON %s %s TO PUBLIC', o.kind, o.name)
		FROM lockfence._own_objects() o
		WHERE o.kind IN ('FUNCTION', 'TYPE') AND NOT EXISTS (SELECT FROM aclexplode(o.acl) AS a WHERE a.grantee = 0)
			AND CASE WHEN format('%s:%s', o.catalog, o.id) = ANY (old) THEN format('%s:%s', o.catalog, o.id) = ANY (open) ELSE o.initial IS NULL END
		UNION ALL
		SELECT DISTINCT format('REVOKE %s ON %s %s FROM %s', a.privilege_type, o.kind, o.name, lockfence._grantee(a.grantee))
		FROM lockfence._own_objects() o CROSS JOIN LATERAL aclexplode(o.acl) AS a
		WHERE format('%s:%s', o.catalog, o.id) <> ALL (old) AND a.grantee <> o.owner AND NOT CASE
			WHEN o.kind IN ('FUNCTION', 'TYPE') THEN a.grantee = 0
			ELSE o.initial IS NOT NULL AND a.privilege_type = 'SELECT' AND (a.grantee = 0 OR a.grantee = 'pg_monitor'::regrole
				AND NOT EXISTS (SELECT FROM aclexplode(o.acl) AS p WHERE p.grantee = 0 AND p.privilege_type = 'SELECT')) END
	LOOP
		EXECUTE step;
	END LOOP;
END
$$;

SELECT lockfence._settle_privileges();
DROP FUNCTION lockfence._settle_privileges();
GRANT EXECUTE ON FUNCTION lockfence._refusals() TO pg_monitor;
