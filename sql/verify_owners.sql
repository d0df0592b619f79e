-- The roles that can take the guards off fenced tables, or get around them.

CREATE FUNCTION lockfence._grantee(role oid)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE role WHEN 0 THEN 'PUBLIC' ELSE lockfence._identifier(pg_get_userbyid(role)) END
$$;
COMMENT ON FUNCTION lockfence._grantee(oid) IS
'a role as GRANT and REVOKE take it';

CREATE FUNCTION lockfence._is_outsider(role oid, owner oid)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT role <> owner AND NOT coalesce((SELECT rolsuper FROM pg_roles WHERE oid = role), false)
$$;
COMMENT ON FUNCTION lockfence._is_outsider(oid, oid) IS
'whether a grant to a role gives it what it would not have otherwise';

-- The roles that can act as an owner.  Superusers are left out: they can do anything.
CREATE FUNCTION lockfence._logins_as(owner oid)
RETURNS SETOF oid
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.oid FROM pg_roles r
	WHERE r.rolcanlogin AND NOT r.rolsuper
		AND pg_has_role(r.oid, owner,
			CASE WHEN current_setting('server_version_num')::integer < 160000 THEN 'MEMBER' ELSE 'USAGE, SET' END)
$$;
COMMENT ON FUNCTION lockfence._logins_as(oid) IS
'the login roles, other than superusers, that are a role or can act as it';

-- A statement needs privileges on the table that it names, which may be a parent of the table.
CREATE FUNCTION lockfence._others_write(member regclass, owner oid)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH granted AS (
		SELECT c.relacl AS acl FROM lockfence._ancestors(member) a JOIN pg_class c ON c.oid = a.ancestor
		UNION ALL
		SELECT c.attacl FROM lockfence._ancestors(member) a JOIN pg_attribute c ON c.attrelid = a.ancestor
	)
	SELECT EXISTS (
		SELECT FROM granted g CROSS JOIN aclexplode(g.acl) AS a
		WHERE a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE') AND a.grantee <> owner
			AND a.grantee NOT IN (SELECT lockfence._logins_as(owner)))
$$;
COMMENT ON FUNCTION lockfence._others_write(regclass, oid) IS
'whether roles may write to a table that can neither log in nor act as its owner, so that no application has to';

CREATE FUNCTION lockfence._owner_problem(member regclass, owner oid)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN owner IN (SELECT lockfence._logins_as(owner)) THEN
			format('%s is owned by login role "%s", which can remove its guards.', member, pg_get_userbyid(owner))
		ELSE
			format('%s is owned by "%s", which can remove its guards and which these roles can act as: %s.', member,
				pg_get_userbyid(owner), (
					SELECT string_agg(format('"%s"', pg_get_userbyid(l.role)), ', ' ORDER BY pg_get_userbyid(l.role))
					FROM lockfence._logins_as(owner) AS l (role)))
		END
$$;
COMMENT ON FUNCTION lockfence._owner_problem(regclass, oid) IS
'the problem of the finding owner_can_login';

CREATE FUNCTION lockfence._verify_owners(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid::regclass, v.severity, 'owner_can_login', lockfence._owner_problem(c.oid, c.relowner), NULL, v.advice
	FROM unnest(members) m JOIN pg_class c ON c.oid = m.member
		CROSS JOIN lockfence._others_write(c.oid, c.relowner) AS w (is_split)
		JOIN (VALUES
			(true, 'info', 'Keep it for migrations, and have the application log in as a role that is not the owner.'),
			(false, 'warning', 'Have the application log in as a role that is not the owner, and grant it what it writes. The owner stays, for migrations.')
		) AS v (is_split, severity, advice) ON v.is_split = w.is_split
	WHERE m.root IS NOT NULL AND EXISTS (SELECT FROM lockfence._logins_as(c.relowner))
	UNION ALL
	SELECT c.oid, 'warning', 'owner_can_login', lockfence._owner_problem(c.oid, c.relowner), NULL,
		'Give it to the superuser that owns the extension.'
	FROM pg_class c
	WHERE c.relnamespace = 'lockfence'::regnamespace AND c.relname IN ('mark', 'state', 'admin_log', 'fenced', 'ddl_fence', 'lease')
		AND EXISTS (SELECT FROM lockfence._logins_as(c.relowner))
	UNION ALL
	SELECT c.oid, 'warning', 'trigger_privilege',
		format('%s may create triggers on %s, which can change what the guard has checked.',
			lockfence._grantee(a.grantee), c.oid::regclass),
		NULL, 'Revoke TRIGGER, unless the role makes migrations and is trusted as the owner is.'
	FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
		CROSS JOIN aclexplode(c.relacl) AS a
	WHERE a.privilege_type = 'TRIGGER' AND f.root IS NOT NULL AND lockfence._is_outsider(a.grantee, c.relowner)
$$;
COMMENT ON FUNCTION lockfence._verify_owners(lockfence._member[]) IS
'findings of verify(): who can take the guards off fenced tables, or get around them';
