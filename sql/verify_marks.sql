-- The tables of marks: are they as the extension made them, and who can write to them?

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
	FROM (VALUES ('mark'), ('state'), ('admin_log'), ('fenced'), ('ddl_fence'), ('lease')) AS n (name) CROSS JOIN LATERAL lockfence._own_class(n.name) c
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

-- Each fault of the index has a remedy of its own.
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

-- This leaves out what has a finding of its own, and a constraint whose index is reported.
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
		SELECT c.oid FROM pg_class c WHERE c.relname IN ('mark', 'state', 'admin_log', 'refusals', 'offenders', 'takeovers'))
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
