-- The extension's own schema, functions and types: their owners, and what others have made of them.

CREATE FUNCTION lockfence._verify_schema()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'warning', 'schema_owner',
		format('Schema lockfence is owned by "%s", which can drop the fence''s objects and create others in their place.',
			pg_get_userbyid(n.nspowner)),
		NULL, 'Look at what is in it, and give it to the superuser that owns the extension.'
	FROM pg_namespace n
	WHERE n.nspname = 'lockfence' AND EXISTS (
		SELECT FROM pg_roles WHERE oid = n.nspowner AND NOT rolsuper)
	UNION ALL
	SELECT NULL, 'warning', 'schema_writable',
		format('%s may create objects in schema lockfence, where they can pass for the fence''s own.',
			lockfence._grantee(a.grantee)),
		format('REVOKE CREATE ON SCHEMA lockfence FROM %s;', lockfence._grantee(a.grantee)), NULL
	FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) AS a
	WHERE n.nspname = 'lockfence' AND a.privilege_type = 'CREATE' AND lockfence._is_outsider(a.grantee, n.nspowner)
	UNION ALL
	SELECT NULL, 'warning', 'schema_stranger',
		format('%s %s is in schema lockfence and belongs to no extension: calls meant for the fence can reach it.',
			s.kind, s.name),
		NULL, 'Find out where it comes from, and drop it.'
	FROM (
		SELECT p.tableoid, p.oid, 'routine', p.oid::regprocedure::text FROM pg_proc p
		WHERE p.pronamespace = 'lockfence'::regnamespace
		UNION ALL
		SELECT c.tableoid, c.oid, CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
			WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' ELSE 'table' END, c.oid::regclass::text
		FROM pg_class c
		WHERE c.relnamespace = 'lockfence'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
	) AS s (catalog, id, kind, name)
	WHERE NOT EXISTS (
		SELECT FROM pg_depend d
		WHERE d.classid = s.catalog AND d.objid = s.id AND d.objsubid = 0 AND d.deptype IN ('e', 'a', 'i'))
$$;
COMMENT ON FUNCTION lockfence._verify_schema() IS
'findings of verify(): the owner and the contents of the extension''s schema';

CREATE FUNCTION lockfence._verify_functions()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH own AS MATERIALIZED (
		SELECT o.name AS routine, p.*, o.acl, c.code, c.problem, c.advice,
			c.code IS NULL AND o.initial IS NOT NULL AND NOT EXISTS (
				SELECT FROM aclexplode(o.initial) AS a WHERE a.grantee = 0) AS is_internal
		FROM lockfence._own_objects() o JOIN pg_proc p ON o.kind = 'FUNCTION' AND p.oid = o.id
			LEFT JOIN (VALUES
				('present_is_public', 'any role can raise any mark, and so fence every holder out.',
					'Grant it to the roles that hold locks, and revoke it from PUBLIC.', ARRAY[
					'present', 'issue', 'acquire', 'renew', 'release', 'token_of', 'present_as', 'guarded_update', 'guarded_delete', 'guarded_insert', 'guard_row', 'guard_statement', 'guard_truncate',
					'issue_from', 'stop_issuing', 'issue_row']),
				('admin_is_public', 'any role can move marks.', NULL, ARRAY[
					'raise_mark', 'reset_mark', 'set_epoch', 'reset_floor', 'reopen', 'prune', 'reconcile', 'prune_leases']),
				('admin_is_public', 'it is for administrators.', NULL, ARRAY['drill', 'stats_reset', 'fence_ddl', 'unfence_ddl', 'retire'])
			) AS c (code, problem, advice, names) ON p.proname = ANY (c.names)
	)
	SELECT NULL::regclass, 'warning', o.code, format('PUBLIC may execute %s: %s', o.routine, o.problem),
		CASE WHEN o.advice IS NULL THEN format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC;', o.routine) END, o.advice
	FROM own o
	WHERE o.code IS NOT NULL AND EXISTS (
		SELECT FROM aclexplode(o.acl) AS a WHERE a.grantee = 0 AND a.privilege_type = 'EXECUTE')
	UNION ALL
	SELECT NULL, 'warning', 'internal_grant',
		format('%s may execute what only the extension itself is to call: %s.', lockfence._grantee(a.grantee),
			string_agg(o.routine, ', ' ORDER BY o.routine COLLATE "C")),
		format('REVOKE EXECUTE ON FUNCTION %s FROM %s;', string_agg(o.routine, ', ' ORDER BY o.routine COLLATE "C"),
			lockfence._grantee(a.grantee)), NULL
	FROM own o CROSS JOIN LATERAL aclexplode(o.acl) AS a
	WHERE o.is_internal AND lockfence._is_outsider(a.grantee, o.proowner)
		AND NOT (o.proname IN ('_refusals', '_offenders', '_takeovers') AND a.grantee = 'pg_monitor'::regrole)
	GROUP BY a.grantee
	-- reconcile(), drill() and issue_from() run with their caller's rights, and take these
	HAVING bool_or(NOT EXISTS (
		SELECT FROM own f CROSS JOIN LATERAL aclexplode(f.acl) AS g
		WHERE g.grantee = a.grantee AND a.grantee <> 0 AND f.proname = CASE
			WHEN o.proname IN ('_raise_mark', '_reconciled') THEN 'reconcile'
			WHEN o.proname = '_reset_mark' THEN 'drill' WHEN o.proname = '_record_issuer' THEN 'issue_from' END))
	UNION ALL
	SELECT NULL, 'error', 'guard_function',
		format('%s is not the function that the extension made: the guards do something else.', o.routine),
		format('CREATE OR REPLACE FUNCTION %s RETURNS pg_catalog.%s LANGUAGE c AS ''$libdir/lockfence'', ''lockfence_%s'';',
			o.routine, CASE WHEN o.proname IN ('guard_ddl', 'admit_ddl', 'follow_partitions') THEN 'event_trigger' ELSE 'trigger' END, o.proname), NULL
	FROM own o
	WHERE o.proname IN ('guard_row', 'guard_statement', 'guard_truncate', 'guard_mark', 'guard_marks', 'guard_record',
			'state_changed', 'guard_ddl', 'admit_ddl', 'follow_partitions')
		AND (o.prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')
			OR o.prosrc <> 'lockfence_' || o.proname)
	UNION ALL
	SELECT NULL, 'warning', 'function_owner',
		format('%s is owned by "%s", which can replace it.', o.routine, pg_get_userbyid(o.proowner)),
		NULL, 'Look at what it does, and give it to the superuser that owns the extension.'
	FROM own o JOIN pg_roles r ON r.oid = o.proowner
	WHERE NOT r.rolsuper
$$;
COMMENT ON FUNCTION lockfence._verify_functions() IS
'findings of verify(): functions of the extension that others can call or have changed';

CREATE FUNCTION lockfence._verify_token_type()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, v.severity, 'token_type', format('Domain lockfence.fence_token %s', v.problem), v.remedy, v.advice
	FROM pg_type t CROSS JOIN LATERAL (
		SELECT 'error', 'has a default: every INSERT without a token presents it.',
			'ALTER DOMAIN lockfence.fence_token DROP DEFAULT;', NULL
		WHERE t.typdefault IS NOT NULL
		UNION ALL
		SELECT 'warning', 'is NOT NULL: writes without a token can fail for the wrong reason.',
			NULL, 'Drop NOT NULL.'
		WHERE t.typnotnull
		UNION ALL
		SELECT 'warning', format('has constraint "%s": adding a token column rewrites the table.', conname),
			NULL, 'Drop the constraint.'
		FROM pg_constraint WHERE contypid = t.oid AND contype = 'c'
	) AS v (severity, problem, remedy, advice)
	WHERE t.typnamespace = 'lockfence'::regnamespace AND t.typname = 'fence_token'
$$;
COMMENT ON FUNCTION lockfence._verify_token_type() IS
'findings of verify(): changes of the domain of tokens';
