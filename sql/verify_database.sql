-- The database as a whole.

CREATE FUNCTION lockfence._own_class(class_name name)
RETURNS SETOF pg_class
LANGUAGE sql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT * FROM pg_class WHERE relnamespace = 'lockfence'::regnamespace AND relname = class_name
$$;
COMMENT ON FUNCTION lockfence._own_class(name) IS
'the catalog row of a relation of the extension, if it exists';

CREATE FUNCTION lockfence._verify_mark_storage()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'warning', 'mark_missing',
		format('lockfence.%s does not exist: %s.', n.name, CASE n.name
			WHEN 'fenced' THEN 'a table that comes without its marks is not noticed'
			ELSE 'every write to a fenced table is refused' END),
		NULL, 'Restore a backup, or drop and create the extension, attach the tables again and raise the marks.'
	FROM (VALUES ('mark'), ('state'), ('admin_log'), ('fenced')) AS n (name)
	WHERE NOT EXISTS (SELECT FROM lockfence._own_class(n.name))
	UNION ALL
	SELECT c.oid, 'error', 'mark_unlogged',
		format('%s is not logged: a crash empties it, and stale tokens pass.', c.oid::regclass),
		format('ALTER TABLE %s SET LOGGED;', c.oid::regclass), NULL
	FROM (VALUES ('mark'), ('state'), ('fenced'), ('lease')) AS n (name) CROSS JOIN LATERAL lockfence._own_class(n.name) c
	WHERE c.relpersistence <> 'p'
	UNION ALL
	SELECT c.oid, 'warning', 'mark_row_security',
		format('%s is under row-level security, which can hide rows from dumps and administration.', c.oid::regclass),
		NULL, 'Disable row-level security, once no role relies on it: every role that may read the table then sees what it hides.'
	FROM (VALUES ('mark'), ('state'), ('admin_log'), ('fenced'), ('lease')) AS n (name) CROSS JOIN LATERAL lockfence._own_class(n.name) c
	WHERE c.relrowsecurity OR c.relforcerowsecurity
	UNION ALL
	SELECT c.oid, 'error', 'mark_columns',
		format('%s does not have the columns that the extension made: what the fence reads there is undefined.',
			c.oid::regclass),
		NULL, format('Restore the database, or drop and create the extension: it had (%s).', n.columns)
	FROM (VALUES
		('mark', 3, 'token lockfence.fence_token, advanced_at timestamp with time zone, resource text'),
		('state', 2, 'name text, value bigint')) AS n (name, number, columns)
		CROSS JOIN LATERAL lockfence._own_class(n.name) c
	WHERE n.columns IS DISTINCT FROM (
		SELECT string_agg(format('%s %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = c.oid AND attnum BETWEEN 1 AND n.number)
	UNION ALL
	-- that of the marks is sorted by: mark_key
	SELECT c.oid, 'error', 'mark_columns',
		format('Column "name" of %s is not of COLLATE "C": every write to a fenced table is refused.', c.oid::regclass),
		format('ALTER TABLE %s ALTER COLUMN name TYPE pg_catalog.text COLLATE pg_catalog."C";', c.oid::regclass), NULL
	FROM lockfence._own_class('state') c JOIN pg_attribute a ON a.attrelid = c.oid
	WHERE a.attname = 'name' AND a.atttypid = 'pg_catalog.text'::regtype AND a.attcollation <> 'pg_catalog."C"'::regcollation
	UNION ALL
	SELECT c.oid, CASE WHEN f.is_harmless THEN 'warning' ELSE 'error' END, 'mark_columns',
		format('%s has a column "%s" that the fence does not know and %s.', c.oid::regclass,
			lockfence._visible(a.attname), CASE WHEN f.is_harmless THEN 'leaves null'
				ELSE 'cannot leave null: no mark is raised' END),
		NULL, 'Drop the column, if its contents are no longer needed.'
	FROM (VALUES ('mark', 3), ('state', 2)) AS n (name, number)
		CROSS JOIN LATERAL lockfence._own_class(n.name) c JOIN pg_attribute a ON a.attrelid = c.oid
		JOIN lockfence._foreign_things() f ON f.target = c.oid AND f.kind = 'column' AND f.name = a.attname
	WHERE a.attnum > n.number AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION lockfence._verify_mark_storage() IS
'findings of verify(): tables of marks that are not as the extension made them';

-- What the index is like decides what mends it.
CREATE FUNCTION lockfence._verify_mark_key()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid, 'error', 'mark_key', format('lockfence.mark_pkey %s: a mark could be missed, and stale tokens pass.',
		p.problem),
		CASE
			WHEN p.remedy <> '' THEN p.remedy
			ELSE concat(
				CASE WHEN i.indexrelid IS NOT NULL AND NOT i.indisprimary THEN 'DROP INDEX lockfence.mark_pkey; ' END,
				'ALTER TABLE lockfence.mark ',
				(SELECT format('DROP CONSTRAINT %s, ', lockfence._identifier(conname))
					FROM pg_constraint WHERE conrelid = c.oid AND contype = 'p'),
				'ADD CONSTRAINT mark_pkey PRIMARY KEY (resource);')
		END, NULL
	FROM lockfence._own_class('mark') c
		LEFT JOIN lockfence._own_class('mark_pkey') k ON true
		LEFT JOIN pg_index i ON i.indexrelid = k.oid AND i.indrelid = c.oid
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'resource' AND NOT a.attisdropped
		CROSS JOIN LATERAL (
			SELECT CASE
				WHEN i.indexrelid IS NULL THEN 'is not an index of lockfence.mark'
				WHEN a.attcollation <> '"C"'::regcollation OR i.indcollation[0] <> '"C"'::regcollation
					THEN 'is not sorted by COLLATE "C"'
				WHEN i.indkey::text <> a.attnum::text OR NOT i.indisunique OR i.indpred IS NOT NULL OR NOT i.indisprimary
					THEN 'is not the primary key on resource'
				WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN 'is not valid'
			END, CASE
				WHEN a.attcollation <> '"C"'::regcollation
					THEN 'ALTER TABLE lockfence.mark ALTER COLUMN resource TYPE pg_catalog.text COLLATE pg_catalog."C";'
				WHEN i.indisprimary AND NOT (i.indisvalid AND i.indisready AND i.indislive)
					THEN 'REINDEX INDEX lockfence.mark_pkey;'
				ELSE ''
			END
		) AS p (problem, remedy)
	WHERE p.problem IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._verify_mark_key() IS
'findings of verify(): the index by which marks are found';

CREATE FUNCTION lockfence._verify_mark_hash()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid::regclass, 'info', 'mark_hash',
		format('lockfence.mark_hash %s: marks that are not cached are found more slowly, by the primary key.', p.problem),
		CASE WHEN i.indexrelid IS NULL THEN '' ELSE 'DROP INDEX lockfence.mark_hash; ' END
			|| 'CREATE INDEX mark_hash ON lockfence.mark USING hash (resource);', NULL
	FROM lockfence._own_class('mark') c
		LEFT JOIN lockfence._own_class('mark_hash') k ON true
		LEFT JOIN pg_index i ON i.indexrelid = k.oid AND i.indrelid = c.oid
		LEFT JOIN pg_am m ON m.oid = k.relam
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'resource' AND NOT a.attisdropped
		CROSS JOIN LATERAL (
			SELECT CASE
				WHEN i.indexrelid IS NULL THEN 'is not an index of lockfence.mark'
				WHEN m.amname <> 'hash' OR i.indkey::text <> a.attnum::text OR i.indpred IS NOT NULL
					THEN 'is not a hash index on resource'
				WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN 'is not valid'
			END
		) AS p (problem)
	WHERE p.problem IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._verify_mark_hash() IS
'findings of verify(): the index that makes finding a mark faster';

CREATE FUNCTION lockfence._verify_mark_guards()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid, 'error', 'mark_guard',
		format('Trigger "%s" of %s %s', g.name, c.oid::regclass, CASE
			WHEN t.oid IS NULL THEN 'is missing'
			WHEN NOT a.is_as_made THEN 'is not as the extension made it'
			ELSE 'does not fire always' END)
			|| CASE g.name
				WHEN '~lockfence_state' THEN ': sessions do not notice a new epoch.'
				WHEN '~lockfence_merge' THEN ': a restore could lower the epoch or the floor.'
				WHEN '~lockfence_record' THEN ': sessions do not notice what comes on record, or goes off it.'
				ELSE ': a restore or a superuser''s DML could lower marks.' END,
		CASE WHEN t.oid IS NOT NULL AND NOT a.is_as_made
				THEN format('DROP TRIGGER %I ON %s; ', g.name, c.oid::regclass) ELSE '' END
			|| CASE WHEN t.oid IS NULL OR NOT a.is_as_made
				THEN format('CREATE TRIGGER %I %s ON %s FOR EACH %s EXECUTE FUNCTION %s; ',
					g.name, g.events, c.oid::regclass, g.level, g.function) ELSE '' END
			|| format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;', c.oid::regclass, g.name), NULL
	FROM (VALUES
		('mark', '~lockfence_mark', 31, 'lockfence.guard_mark()'::regprocedure, 'BEFORE INSERT OR UPDATE OR DELETE', 'ROW'),
		('mark', '~lockfence_marks', 34, 'lockfence.guard_marks()', 'BEFORE TRUNCATE', 'STATEMENT'),
		('state', '~lockfence_merge', 7, 'lockfence.merge_state()', 'BEFORE INSERT', 'ROW'),
		('state', '~lockfence_state', 29, 'lockfence.state_changed()', 'AFTER INSERT OR UPDATE OR DELETE', 'ROW'),
		('fenced', '~lockfence_record', 31, 'lockfence.guard_record()', 'BEFORE INSERT OR UPDATE OR DELETE', 'ROW')
	) AS g (table_name, name, type, function, events, level)
		CROSS JOIN LATERAL lockfence._own_class(g.table_name) c
		LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = g.name
		CROSS JOIN LATERAL (
			SELECT t.tgtype = g.type AND t.tgfoid = g.function AND t.tgattr::text = '' AND t.tgqual IS NULL
		) AS a (is_as_made)
	WHERE t.oid IS NULL OR NOT a.is_as_made OR t.tgenabled <> 'A'
$$;
COMMENT ON FUNCTION lockfence._verify_mark_guards() IS
'findings of verify(): the triggers of the tables of marks';

-- What has a finding of its own is left to that, and a constraint that has an index to the index.
CREATE FUNCTION lockfence._verify_foreign_things()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH thing AS (
		SELECT f.*, k.code, c.contype, c.conrelid
		FROM lockfence._foreign_things() f
			JOIN (VALUES
				('trigger', 'mark_foreign_trigger'), ('rule', 'mark_foreign_rule'), ('index', 'mark_foreign_index'),
				('constraint', 'mark_foreign_constraint'), ('access method', 'mark_access_method'),
				('a place among the partitions of another table', 'mark_inheritance'),
				('a table that it inherits from', 'mark_inheritance'),
				('a table that inherits from it', 'mark_inheritance')
			) AS k (kind, code) ON k.kind = f.kind
			LEFT JOIN LATERAL (
				SELECT * FROM pg_constraint
				WHERE conname = f.name AND f.target IN (conrelid, confrelid) ORDER BY oid LIMIT 1
			) AS c ON f.kind IN ('constraint', 'index')
	)
	SELECT t.target, CASE WHEN t.is_harmless THEN 'warning' ELSE 'error' END, t.code,
		format('%s has %s%s, which is not of the extension: %s.', t.target, t.kind,
			' "' || lockfence._visible(t.name) || '"', CASE
				WHEN t.is_harmless THEN 'the fence writes past it'
				ELSE 'what the fence writes could be lost, so it raises no mark' END),
		NULL, CASE
			WHEN t.kind = 'trigger' THEN 'End the tool that copies the table by it, and see that it does not put its copy in place; then drop the trigger.'
			WHEN t.kind IN ('rule', 'index') OR t.conrelid = t.target THEN 'Find out what it is for, and drop it.'
			ELSE 'Undo what gave it that: the extension made it without.' END
	FROM thing t
	WHERE (t.name IS NULL OR t.name NOT IN ('mark_pkey', 'mark_hash'))
		AND (t.kind <> 'constraint' OR t.contype IN ('c', 'f', 't'))
	UNION ALL
	SELECT NULL, 'warning', 'ddl_guard',
		format('Event trigger %s %s: %s.', n.name,
			CASE WHEN e.oid IS NULL THEN 'is missing' ELSE 'does not fire always' END, n.problem),
		CASE WHEN e.oid IS NOT NULL THEN format('ALTER EVENT TRIGGER %s ENABLE ALWAYS;', n.name) END,
		CASE WHEN e.oid IS NULL THEN 'Restore a backup, or drop and create the extension, attach the tables again and raise the marks.' END
	FROM (VALUES
		('lockfence_before_ddl', 'lockfence.guard_ddl()'::regprocedure,
			'other roles can put objects on the tables of marks that make them lose marks'),
		('lockfence_after_ddl', 'lockfence.guard_ddl()', 'other roles can put objects on the tables of marks that make them lose marks'),
		('lockfence_watch_types', 'lockfence.watch_types()', 'commands that give resources other names are not warned of'),
		('lockfence_partitions', 'lockfence.follow_partitions()',
			'new partitions are sealed, and a partition that is detached, written to and attached again is trusted'),
		('lockfence_drops', 'lockfence.follow_drops()', 'tables that are dropped stay on record')
	) AS n (name, function, problem)
		LEFT JOIN pg_event_trigger e ON e.evtname = n.name AND e.evtfoid = n.function
	WHERE e.oid IS NULL OR e.evtenabled <> 'A'
$$;
COMMENT ON FUNCTION lockfence._verify_foreign_things() IS
'findings of verify(): what other roles have put on the tables of marks, and whether they could';

CREATE FUNCTION lockfence._verify_mark_privileges()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH granted (class, kind, grantee, privilege) AS MATERIALIZED (
		SELECT c.oid::regclass, c.relkind, a.grantee, a.privilege_type
		FROM pg_class c CROSS JOIN aclexplode(c.relacl) AS a
		WHERE c.relnamespace = 'lockfence'::regnamespace AND lockfence._is_outsider(a.grantee, c.relowner)
		UNION
		SELECT c.oid::regclass, c.relkind, a.grantee, format('%s (%s)', a.privilege_type, lockfence._identifier(t.attname))
		FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid CROSS JOIN aclexplode(t.attacl) AS a
		WHERE c.relnamespace = 'lockfence'::regnamespace AND lockfence._is_outsider(a.grantee, c.relowner)
	)
	SELECT g.class, 'warning', 'mark_writable',
		format('%s has %s on %s, which the fence alone should write.',
			lockfence._grantee(g.grantee), string_agg(g.privilege, ', ' ORDER BY g.privilege), g.class),
		format('REVOKE %s ON %s%s FROM %s;', string_agg(g.privilege, ', ' ORDER BY g.privilege),
			CASE g.kind WHEN 'S' THEN 'SEQUENCE ' END, lockfence._relation_name(g.class), lockfence._grantee(g.grantee)), NULL
	FROM granted g
	WHERE split_part(g.privilege, ' ', 1) <> 'SELECT'
	GROUP BY g.class, g.kind, g.grantee
	UNION ALL
	SELECT g.class, 'warning', 'mark_is_public',
		format('Every role may read %s: a client that reads a mark and presents it is not the holder, and is not detected.', g.class),
		NULL, 'Grant it to the roles that monitor, and revoke it from PUBLIC.'
	FROM granted g
	WHERE g.grantee = 0 AND split_part(g.privilege, ' ', 1) = 'SELECT' AND g.class IN (
		SELECT c.oid FROM pg_class c WHERE c.relname IN ('mark', 'state', 'admin_log', 'refusals'))
	GROUP BY g.class
	UNION ALL
	SELECT NULL, 'warning', 'mark_writable',
		format('"%s" is a member of pg_write_all_data and can write to the tables of marks.',
			pg_get_userbyid(m.member)),
		NULL, 'Revoke the membership, and grant the role what it needs by schema.'
	FROM pg_auth_members m JOIN pg_roles w ON w.oid = m.roleid AND w.rolname = 'pg_write_all_data'
	WHERE lockfence._is_outsider(m.member, 0)
$$;
COMMENT ON FUNCTION lockfence._verify_mark_privileges() IS
'findings of verify(): roles that can write marks by hand, or read them';

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
					'present', 'issue', 'acquire', 'renew', 'release', 'token_of', 'present_as', 'guarded_update', 'guarded_delete', 'guard_row', 'guard_statement', 'guard_truncate']),
				('admin_is_public', 'any role can move marks.', NULL, ARRAY[
					'raise_mark', 'reset_mark', 'set_epoch', 'reset_floor', 'reopen', 'prune', 'reconcile', 'prune_leases']),
				('admin_is_public', 'it is for administrators.', NULL, ARRAY['drill', 'stats_reset'])
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
		AND NOT (o.proname = '_refusals' AND a.grantee = 'pg_monitor'::regrole)
	GROUP BY a.grantee
	-- reconcile() and drill() run with their caller's rights, and take these
	HAVING bool_or(NOT EXISTS (
		SELECT FROM own f CROSS JOIN LATERAL aclexplode(f.acl) AS g
		WHERE g.grantee = a.grantee AND a.grantee <> 0 AND f.proname = CASE
			WHEN o.proname IN ('_raise_mark', '_reconciled') THEN 'reconcile'
			WHEN o.proname = '_reset_mark' THEN 'drill' END))
	UNION ALL
	SELECT NULL, 'error', 'guard_function',
		format('%s is not the function that the extension made: the guards do something else.', o.routine),
		format('CREATE OR REPLACE FUNCTION %s RETURNS pg_catalog.%s LANGUAGE c AS ''$libdir/lockfence'', ''lockfence_%s'';',
			o.routine, CASE WHEN o.proname IN ('guard_ddl', 'follow_partitions') THEN 'event_trigger' ELSE 'trigger' END, o.proname), NULL
	FROM own o
	WHERE o.proname IN ('guard_row', 'guard_statement', 'guard_truncate', 'guard_mark', 'guard_marks', 'guard_record',
			'state_changed', 'guard_ddl', 'follow_partitions')
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

-- pg_parameter_acl exists from PostgreSQL 15.
CREATE FUNCTION lockfence._verify_parameter_grants()
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF to_regclass('pg_parameter_acl') IS NULL THEN
		RETURN;
	END IF;
	RETURN QUERY EXECUTE $query$
		SELECT NULL::regclass, 'warning', s.code,
			format('%s has %s on parameter %s: %s',
				lockfence._grantee(a.grantee), a.privilege_type, p.parname, s.problem),
			NULL, 'Revoke it, unless it is the role for maintenance.'
		FROM pg_parameter_acl p CROSS JOIN aclexplode(p.paracl) AS a
			JOIN (VALUES
				('session_replication_role', 'replica_role_grant', 'it can keep triggers that are not ALWAYS from firing.'),
				('lockfence.bypass', 'bypass_grant', 'it can write past every fence.'),
				('lockfence.preempt', 'preempt_grant', 'it can end other roles'' transactions.'),
				('lockfence.validator', 'validator_grant', 'it can raise marks to tokens that no validator was asked about.')
			) AS s (name, code, problem) ON s.name = p.parname
		WHERE lockfence._is_outsider(a.grantee, 10)
	$query$;
END
$$;
COMMENT ON FUNCTION lockfence._verify_parameter_grants() IS
'findings of verify(): roles that may set what switches guards off';

CREATE FUNCTION lockfence._switched_off(config text[])
RETURNS TABLE (setting text, code text, severity text, problem text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.name, v.code, v.severity, v.problem
	FROM (
		SELECT lower(split_part(s.setting, '=', 1)), lower(substr(s.setting, strpos(s.setting, '=') + 1))
		FROM unnest(config) AS s (setting)
	) AS c (name, value) JOIN (VALUES
		('session_replication_role', 'replica_role', 'warning', 'only triggers that fire always do'),
		('lockfence.bypass', 'bypass', 'error', 'no fence decides')
	) AS v (name, code, severity, problem) ON v.name = c.name
	WHERE CASE c.name WHEN 'session_replication_role' THEN c.value = 'replica'
		ELSE c.value !~ '^(of|off|f|fa|fal|fals|false|n|no|0)$' END
$$;
COMMENT ON FUNCTION lockfence._switched_off(text[]) IS
'the settings of a role, database or function that switch guards off';

CREATE FUNCTION lockfence._verify_settings()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, o.severity, o.code || '_setting',
		format('%s is set %s: there %s.', o.setting, w.place, o.problem),
		NULL, 'Reset it there, unless it is the role for maintenance.'
	FROM pg_db_role_setting s
		LEFT JOIN pg_database d ON d.oid = s.setdatabase
		CROSS JOIN LATERAL lockfence._switched_off(s.setconfig) o
		CROSS JOIN LATERAL (
			SELECT concat_ws(' ', 'for',
					CASE s.setrole WHEN 0 THEN 'every role' ELSE format('role "%s"', pg_get_userbyid(s.setrole)) END,
					'in database "' || d.datname || '"')
		) AS w (place)
	WHERE s.setdatabase = 0 OR d.datname = current_database()
	UNION ALL
	SELECT NULL, o.severity, o.code || '_in_function',
		format('%s is set by %s: while it runs, %s.', o.setting, p.oid::regprocedure, o.problem),
		NULL, 'Reset it there, unless the function is for maintenance.'
	FROM pg_proc p CROSS JOIN LATERAL lockfence._switched_off(p.proconfig) o
	WHERE p.proconfig IS NOT NULL
	UNION ALL
	SELECT NULL, 'error', 'bypass_is_on',
		'lockfence.bypass is on in this session: no fence decides.',
		NULL, CASE WHEN 'configuration file' = (SELECT source FROM pg_settings WHERE name = 'lockfence.bypass')
			THEN 'Take it out of the configuration file, and reload.' ELSE 'Set it off in this session.' END
	FROM lockfence._switched_off(ARRAY['lockfence.bypass=' || nullif(current_setting('lockfence.bypass', true), '')])
$$;
COMMENT ON FUNCTION lockfence._verify_settings() IS
'findings of verify(): settings in force that switch guards off';

CREATE FUNCTION lockfence._verify_gate()
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 2
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF to_regclass('lockfence.state') IS NULL OR EXISTS (
		SELECT FROM lockfence._foreign_things() f
		WHERE f.target = to_regclass('lockfence.state') AND f.kind IN ('column', 'access method') AND NOT f.is_harmless)
	THEN
		RETURN;
	END IF;
	RETURN QUERY
	WITH gate AS MATERIALIZED (
		SELECT *, format('The database went from timeline %s to %s (%s)', recorded_timeline, timeline,
			concat_ws(': ', event, nullif(reason, ''))) AS change,
			'ask the lock service for the highest token that it has issued, and call lockfence.reopen() with a higher one and a reason.' AS act
		FROM lockfence.gate()
	)
	SELECT NULL::regclass, 'warning', 'sealed', change || ', and every write to a fenced table is refused.',
		NULL, 'To go on, ' || act
	FROM gate WHERE state = 'sealed'
	UNION ALL
	SELECT NULL, 'warning', 'timeline_changed', change || ': marks may have gone back, and the next write goes on.',
		NULL, 'Unless no acknowledged commit was lost, ' || act
	FROM gate WHERE state = 'changed' AND event <> 'other system'
	UNION ALL
	SELECT NULL, 'info', 'timeline_changed',
		'The timeline on record is another cluster''s, as after pg_upgrade. The next write puts this one''s on record.',
		$remedy$SELECT lockfence._record_timeline() FROM lockfence.gate() AS g WHERE g.state OPERATOR(pg_catalog.=) 'changed' AND g.event OPERATOR(pg_catalog.=) 'other system';$remedy$,
		NULL
	FROM gate WHERE state = 'changed' AND event = 'other system'
	UNION ALL
	SELECT NULL, 'warning', 'timeline_unknown',
		'No timeline is on record: lockfence would not notice if the database went back in time.',
		$remedy$SELECT lockfence._record_timeline() FROM lockfence.gate() AS g WHERE g.state OPERATOR(pg_catalog.=) 'off';$remedy$,
		NULL
	FROM gate WHERE state = 'off'
	UNION ALL
	SELECT NULL, 'info', 'timeline_ignored',
		format('lockfence.on_timeline_change is %s: if the database goes back in time, stale holders are accepted.', s.setting),
		NULL, 'Reset it, unless its value was chosen for this database.'
	FROM gate, current_setting('lockfence.on_timeline_change') AS s (setting)
	WHERE s.setting IN ('warn', 'ignore');
END
$$;
COMMENT ON FUNCTION lockfence._verify_gate() IS
'findings of verify(): the database went back in time, or lockfence would not notice it';

CREATE FUNCTION lockfence._verify_statistics()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'info', 'statistics_unavailable',
		'There is no shared memory for statistics: refusals leave no trace but the server''s log.',
		NULL, 'Add lockfence to shared_preload_libraries, and restart the server.'
	FROM lockfence.stats_info() i
	WHERE NOT i.available AND NOT lockfence._needs_restart()
$$;
COMMENT ON FUNCTION lockfence._verify_statistics() IS
'findings of verify(): nothing is counted';

-- Sizes are PGC_POSTMASTER where the library is preloaded.
CREATE FUNCTION lockfence._verify_memory()
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF lockfence._needs_restart() THEN
		RETURN QUERY SELECT NULL::regclass, 'warning', 'needs_restart',
			'lockfence was replaced by another version, and the server has not been restarted since: no new session can write to a fenced table.',
			NULL, 'Restart the server.';
	END IF;
	RETURN QUERY
	SELECT NULL::regclass, 'info', 'size_ignored',
		format('The configuration sets %s, which has no effect without preloading the library: it is %s.', s.name, s.setting),
		NULL, 'Add lockfence to shared_preload_libraries, and restart the server; or take the setting out.'
	FROM pg_settings s
	WHERE s.name IN ('lockfence.max_cached_marks', 'lockfence.max_tables', 'lockfence.max_refusals')
		AND s.context = 'sighup' AND s.source <> 'default';
END
$$;
COMMENT ON FUNCTION lockfence._verify_memory() IS
'findings of verify(): shared memory of another version, or sizes that it does not have';

CREATE FUNCTION lockfence._verify_tables(tables regclass[])
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	relatives regclass[] := ARRAY(SELECT lockfence._relatives(tables));
	all_guards lockfence._guard[] := ARRAY(SELECT g FROM lockfence._guards(relatives) g);
	members lockfence._member[] := ARRAY(
		SELECT m FROM lockfence._members(relatives, all_guards) m WHERE m.member = ANY (tables));
	guards lockfence._guard[] := ARRAY(SELECT g FROM unnest(all_guards) g WHERE g.member = ANY (tables));
BEGIN
	RETURN QUERY
	SELECT f.target, f.severity, f.code, f.problem, f.remedy, f.advice
	FROM (
		SELECT 1, v.* FROM lockfence._verify_kin(members) v
		UNION ALL SELECT 2, v.* FROM lockfence._verify_neighbours(members, guards) v
		UNION ALL SELECT 3, v.* FROM lockfence._verify_token_column(members) v
		UNION ALL SELECT 4, v.* FROM lockfence._verify_placeholders(members) v
		UNION ALL SELECT 5, v.* FROM lockfence._verify_validator(members) v
		UNION ALL SELECT 6, v.* FROM lockfence._verify_unfenced(members) v
		UNION ALL SELECT 7, v.* FROM lockfence._verify_guard_names(members, guards) v
		UNION ALL SELECT 8, v.* FROM lockfence._verify_guard_contents(members, guards) v
		UNION ALL SELECT 9, v.* FROM lockfence._verify_guard_states(members, guards) v
		UNION ALL SELECT 10, v.* FROM lockfence._verify_choices(members) v
		UNION ALL SELECT 11, v.* FROM lockfence._verify_owners(members) v
		UNION ALL SELECT 12, v.* FROM lockfence._verify_record(members) v
		UNION ALL SELECT 13, v.* FROM lockfence._verify_marks(members) v
	) AS f (subject, target, severity, code, problem, remedy, advice)
	ORDER BY f.subject, array_position(tables, f.target), f.code, f.problem;
END
$$;
COMMENT ON FUNCTION lockfence._verify_tables(regclass[]) IS
'findings of verify() about tables, in an order in which the remedies can be run';

CREATE FUNCTION lockfence._verify_default_validator()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'warning', v.code, format(v.problem, s.signature),
		NULL, 'Set lockfence.validator where it is set now: to a function that exists, or to nothing.'
	FROM nullif(current_setting('lockfence.validator', true), '') AS s (signature)
		CROSS JOIN LATERAL lockfence._find_validator(s.signature) AS f (validator)
		JOIN (VALUES
			('default_validator_missing', 'lockfence.validator names %s, which does not exist: no mark is raised.'),
			('default_validator_unfit',
				'lockfence.validator names %s, which is not a function of a resource and a token that returns boolean: no mark is raised.')
		) AS v (code, problem) ON v.code = CASE
			WHEN f.validator IS NULL THEN 'default_validator_missing'
			WHEN f.validator <> 0 AND NOT lockfence._is_validator(f.validator) THEN 'default_validator_unfit' END
	WHERE s.signature IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._verify_default_validator() IS
'findings of verify(): a default validator that cannot be called';

CREATE FUNCTION lockfence._verify_database()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.target, f.severity, f.code, f.problem, f.remedy, f.advice
	FROM (
		SELECT 1, v.* FROM lockfence._verify_mark_storage() v
		UNION ALL SELECT 2, v.* FROM lockfence._verify_mark_key() v
		UNION ALL SELECT 2, v.* FROM lockfence._verify_mark_hash() v
		UNION ALL SELECT 3, v.* FROM lockfence._verify_mark_guards() v
		UNION ALL SELECT 3, v.* FROM lockfence._verify_foreign_things() v
		UNION ALL SELECT 4, v.* FROM lockfence._verify_mark_privileges() v
		UNION ALL SELECT 5, v.* FROM lockfence._verify_schema() v
		UNION ALL SELECT 6, v.* FROM lockfence._verify_functions() v
		UNION ALL SELECT 7, v.* FROM lockfence._verify_token_type() v
		UNION ALL SELECT 8, v.* FROM lockfence._verify_parameter_grants() v
		UNION ALL SELECT 9, v.* FROM lockfence._verify_settings() v
		UNION ALL SELECT 10, v.* FROM lockfence._verify_gate() v
		UNION ALL SELECT 11, v.* FROM lockfence._verify_statistics() v
		UNION ALL SELECT 12, v.* FROM lockfence._verify_default_validator() v
		UNION ALL SELECT 13, v.* FROM lockfence._verify_memory() v
		UNION ALL SELECT 14, v.* FROM lockfence._verify_mark_names() v
	) AS f (subject, target, severity, code, problem, remedy, advice)
	ORDER BY f.subject, f.code, f.problem
$$;
COMMENT ON FUNCTION lockfence._verify_database() IS
'findings of verify() about the extension and the database';

-- Of lockfence_lease, which may not be there.
CREATE FUNCTION lockfence._verify_lock_tables(target regclass)
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF to_regprocedure('lockfence._verify_issuers(regclass)') IS NOT NULL THEN
		RETURN QUERY EXECUTE 'SELECT * FROM lockfence._verify_issuers($1)' USING target;
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._verify_lock_tables(regclass) IS
'findings of verify() about lock tables that issue tokens';

-- Parents first, since the remedy of a parent can mend its partitions.  A finding is shown
-- on one line, whatever it was made of; text that is not on one line is not a remedy.  Compiling
-- queries that meet a few rows takes far longer than running them.
CREATE FUNCTION lockfence.verify(target regclass DEFAULT NULL)
RETURNS TABLE (target regclass, severity text, code text, problem text, remedy text, advice text)
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
	SELECT v.target, v.severity, v.code, lockfence._visible(v.problem),
		CASE WHEN v.remedy = lockfence._visible(v.remedy) THEN v.remedy END, lockfence._visible(v.advice)
	FROM (
		SELECT t.* FROM lockfence._verify_tables(ARRAY(
			SELECT lockfence._families(CASE WHEN verify.target IS NULL THEN ARRAY(SELECT lockfence._fenced_tables())
				ELSE ARRAY[verify.target] END))) t
		UNION ALL
		SELECT l.* FROM lockfence._verify_lock_tables(verify.target) l
		UNION ALL
		SELECT d.* FROM lockfence._verify_database() d
	) AS v
$$;
COMMENT ON FUNCTION lockfence.verify(regclass) IS
'what is wrong with a table''s fence (null: with every fence), its partitions and children, and with the extension in this database; no rows: nothing. severity: error, a stale write can pass; warning, a role could let one pass, or valid writes fail; info, declared so. remedy is SQL that closes the gap and can be run without being read, parents first; advice says what to decide. Example: SELECT remedy FROM lockfence.verify() WHERE severity = ''error'' AND remedy IS NOT NULL';
