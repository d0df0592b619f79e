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

CREATE FUNCTION lockfence._verify_owners(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT o.member, 'warning', 'owner_can_login',
		CASE WHEN o.owner IN (SELECT lockfence._logins_as(o.owner)) THEN
			format('%s is owned by login role "%s", which can remove its guards.',
				o.member, pg_get_userbyid(o.owner))
		ELSE
			format('%s is owned by "%s", which can remove its guards and which these roles can act as: %s.', o.member,
				pg_get_userbyid(o.owner), (
					SELECT string_agg(format('"%s"', pg_get_userbyid(l.role)), ', ' ORDER BY pg_get_userbyid(l.role))
					FROM lockfence._logins_as(o.owner) AS l (role)))
		END,
		NULL, 'Give it to a role that does not log in and that no such role can act as, and grant the roles that write what they need.'
	FROM (
		SELECT c.oid::regclass, c.relowner
		FROM pg_class c
		WHERE c.oid IN (SELECT m.member FROM unnest(members) m WHERE m.root IS NOT NULL)
			OR c.relnamespace = 'lockfence'::regnamespace AND c.relname IN ('mark', 'state', 'admin_log', 'fenced', 'lease')
	) AS o (member, owner)
	WHERE EXISTS (SELECT FROM lockfence._logins_as(o.owner))
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
