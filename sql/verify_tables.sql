-- Subjects.

CREATE FUNCTION lockfence._verify_kin(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.member, 'error', 'foreign_leaf',
		format('%s is a foreign table under a fenced one: its rows can be written without this server.', f.member),
		NULL, 'Fence it on the server that holds its rows, or remove it from the fenced table.'
	FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
	WHERE c.relkind = 'f' AND f.root IS NOT NULL
	UNION ALL
	SELECT f.member, 'error', CASE WHEN c.relispartition THEN 'unfenced_leaf' ELSE 'unfenced_child' END,
		format('%s has no guard, though %s is fenced: a statement on it passes unchecked.', f.member, f.root),
		CASE WHEN f.is_certain THEN lockfence._create_guards_of(f.member, f.kinds, f.settings) END,
		CASE WHEN NOT f.is_certain THEN lockfence._declare_anew(f.root, f.settings) END
	FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
	WHERE c.relkind <> 'f' AND f.root IS NOT NULL AND NOT f.is_guarded
	UNION ALL
	SELECT f.member, 'error', 'unfenced_parent',
		format('%s is fenced by a statement trigger, which a statement on its parent %s does not fire.',
			f.member, i.inhparent::regclass),
		NULL, format('Fence %s instead, or give the fence of %s a token column.',
			(SELECT ancestor FROM lockfence._ancestors(f.member) ORDER BY height DESC, ancestor LIMIT 1), f.member)
	FROM unnest(members) f JOIN pg_inherits i ON i.inhrelid = f.member
	WHERE f.member = f.root AND 'statement' = ANY (f.kinds)
$$;
COMMENT ON FUNCTION lockfence._verify_kin(lockfence._member[]) IS
'findings of verify(): partitions, inheritance children and parents that the fence does not reach';

CREATE FUNCTION lockfence._verify_unfenced(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT m.member, 'error', 'guard_missing',
		CASE
			WHEN r.settings IS NOT NULL
				THEN format('%s is on record as fenced, but has no guard: nothing refuses a stale write.', m.member)
			WHEN a.attname IS NULL THEN format('%s is not fenced.', m.member)
			ELSE format('%s has a token column, "%s", but no guard: nothing refuses a stale write.', m.member, a.attname)
		END,
		NULL,
		CASE
			WHEN r.settings IS NOT NULL THEN format('Fence %s again by lockfence.attach(), as it was (%s), or take it off the record by lockfence.detach().',
				m.member, lockfence._argument_text(r.settings))
			WHEN c.relkind IN ('r', 'p') THEN format('Fence %s by lockfence.attach(), with the resource that its lock is named by.', m.member)
			WHEN c.oid IS NOT NULL THEN 'Fence the table that holds the rows.'
		END
	FROM unnest(members) m
		LEFT JOIN pg_class c ON c.oid = m.member
		LEFT JOIN LATERAL (
			SELECT attname FROM pg_attribute
			WHERE attrelid = c.oid AND NOT attisdropped AND atttypid = 'lockfence.fence_token'::regtype
			ORDER BY attnum LIMIT 1
		) AS a ON true
		CROSS JOIN LATERAL lockfence._recorded(m.member) AS r (settings)
	WHERE m.root IS NULL AND NOT EXISTS (
		SELECT FROM pg_inherits i JOIN unnest(members) p ON p.member = i.inhparent WHERE i.inhrelid = m.member)
		AND (r.settings IS NOT NULL OR a.attname IS NOT NULL OR NOT lockfence._is_issuer(m.member))
$$;
COMMENT ON FUNCTION lockfence._verify_unfenced(lockfence._member[]) IS
'findings of verify(): tables without any guard';

CREATE FUNCTION lockfence._verify_guard_states(members lockfence._member[], guards lockfence._guard[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.member, 'error', 'guard_missing',
		format('%s has no %s guard: %s', f.member, k.kind, CASE k.kind
			WHEN 'truncate' THEN 'TRUNCATE takes its rows without a token.'
			ELSE 'INSERT, UPDATE and DELETE pass unchecked.' END),
		m.remedy, CASE
			WHEN NOT f.is_certain THEN lockfence._declare_anew(f.root, f.settings)
			WHEN m.remedy IS NULL THEN 'It has the guard from its parent, which lacks it too.'
		END
	FROM unnest(members) f
		JOIN pg_class c ON c.oid = f.member
		CROSS JOIN unnest(f.kinds) AS k (kind)
		CROSS JOIN LATERAL (
			SELECT CASE WHEN f.is_certain THEN lockfence._create_guards_of(f.member, ARRAY[k.kind], f.settings) END
		) AS m (remedy)
	WHERE c.relkind <> 'f' AND f.is_guarded
		AND NOT EXISTS (SELECT FROM unnest(guards) g WHERE g.member = f.member AND g.kind = k.kind)
	UNION ALL
	SELECT g.member, 'error', CASE g.enabled WHEN 'D' THEN 'guard_disabled' ELSE 'guard_not_always' END,
		format('Guard "%s" of %s %s', g.name, g.member, CASE g.enabled
			WHEN 'D' THEN 'is disabled: writes pass unchecked.'
			WHEN 'R' THEN 'fires under session_replication_role = replica only: ordinary writes pass unchecked.'
			ELSE 'does not fire under session_replication_role = replica.' END),
		CASE WHEN r.is_right THEN format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %s;',
			lockfence._relation_name(g.member), lockfence._identifier(g.name)) END,
		CASE WHEN NOT r.is_right THEN lockfence._declare_anew(f.root, f.settings) END
	FROM unnest(guards) g JOIN unnest(members) f ON f.member = g.member
		CROSS JOIN LATERAL (
			SELECT g.is_whole AND NOT g.has_columns AND NOT g.has_condition AND g.fault IS NULL
				AND f.is_certain AND g.settings = f.settings AND g.kind = ANY (f.kinds)
		) AS r (is_right)
	WHERE g.enabled <> 'A'
	UNION ALL
	SELECT g.member, 'error', v.code, format('Guard "%s" of %s %s', g.name, g.member, v.problem),
		NULL, lockfence._declare_anew(f.root, f.settings)
	FROM unnest(guards) g JOIN unnest(members) f ON f.member = g.member
		CROSS JOIN LATERAL (VALUES
			(g.has_columns, 'guard_update_of', 'fires on UPDATE OF some columns only: an update of others passes unchecked.'),
			(g.has_condition, 'guard_when', 'has a WHEN condition: writes for which it is not true pass unchecked.')
		) AS v (found, code, problem)
	WHERE v.found
$$;
COMMENT ON FUNCTION lockfence._verify_guard_states(lockfence._member[], lockfence._guard[]) IS
'findings of verify(): guards that are absent or do not fire for every write';

CREATE FUNCTION lockfence._verify_guard_names(members lockfence._member[], guards lockfence._guard[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH guard AS (
		SELECT g.*, row_number() OVER (PARTITION BY g.member, g.kind ORDER BY g.name <> g.proper_name, g.id) AS place
		FROM unnest(guards) g
	)
	-- A guard that fires later than before sees all that it saw, and more.
	SELECT g.member, 'warning', 'guard_renamed',
		format('Guard "%s" of %s is not named "%s": it may not fire last.',
			g.name, g.member, g.proper_name),
		CASE WHEN l.fires_later THEN lockfence._rename(g.id, g.proper_name) END,
		CASE WHEN NOT l.fires_later THEN format('Rename it, unless a trigger of %s would then fire after it.', g.member) END
	FROM guard g CROSS JOIN LATERAL (
			SELECT g.name::text COLLATE "C" < g.proper_name::text
		) AS l (fires_later)
	WHERE g.place = 1 AND g.name <> g.proper_name AND NOT lockfence._follows(g.id, members)
	UNION ALL
	SELECT g.member, 'warning', 'guard_duplicate',
		format('Trigger "%s" of %s is a second %s guard: each write is checked twice, possibly with different results.',
			g.name, g.member, g.kind),
		NULL, lockfence._declare_anew(f.root, f.settings)
	FROM guard g JOIN unnest(members) f ON f.member = g.member
	WHERE g.place > 1
$$;
COMMENT ON FUNCTION lockfence._verify_guard_names(lockfence._member[], lockfence._guard[]) IS
'findings of verify(): guards whose names are not as attach() makes them';

CREATE FUNCTION lockfence._verify_guard_contents(members lockfence._member[], guards lockfence._guard[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT g.member, 'error', 'guard_altered',
		format('Guard "%s" of %s %s.', g.name, g.member, a.reason), NULL, lockfence._declare_anew(f.root, f.settings)
	FROM unnest(guards) g JOIN unnest(members) f ON f.member = g.member
		CROSS JOIN LATERAL (
			SELECT CASE
				WHEN NOT g.is_whole THEN format('does not fire BEFORE %s FOR EACH %s',
					CASE g.kind WHEN 'truncate' THEN 'TRUNCATE' ELSE 'INSERT OR UPDATE OR DELETE' END,
					CASE g.kind WHEN 'row' THEN 'ROW' ELSE 'STATEMENT' END)
				WHEN g.fault IS NOT NULL THEN format('has arguments that declare no fence: %s', g.fault)
				WHEN g.settings <> f.settings THEN format('declares (%s), but the fence of %s is (%s)',
					lockfence._argument_text(g.settings), f.root, lockfence._argument_text(f.settings))
				WHEN g.kind <> ALL (f.kinds)
					THEN format('is a %s trigger, which cannot decide for this fence', g.kind)
			END
		) AS a (reason)
	WHERE a.reason IS NOT NULL
	UNION ALL
	SELECT i.member, CASE WHEN f.root IS NULL THEN 'warning' ELSE 'error' END, 'guard_impostor',
		format('Trigger "%s" of %s has the name of a guard and calls %s, which is not a guard function: it decides nothing.',
			i.name, i.member, i.function),
		NULL, 'Look at what it does, and rename or drop it.'
	FROM unnest(members) f CROSS JOIN LATERAL lockfence._impostors(ARRAY[f.member]) i
$$;
COMMENT ON FUNCTION lockfence._verify_guard_contents(lockfence._member[], lockfence._guard[]) IS
'findings of verify(): guards that do something else than the fence declares';

CREATE FUNCTION lockfence._verify_neighbours(members lockfence._member[], guards lockfence._guard[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.member, CASE r.ev_enabled WHEN 'D' THEN 'warning' ELSE 'error' END, 'rule',
		format('Rule "%s" of %s can send a write past the guards.', r.rulename, f.member),
		NULL, 'Make it a trigger.'
	FROM unnest(members) f JOIN pg_rewrite r ON r.ev_class = f.member
	WHERE r.ev_type <> '1' AND f.root IS NOT NULL
	UNION ALL
	SELECT t.tgrelid, 'error', 'later_trigger',
		format('Trigger "%s" of %s fires after the guard and can change what the guard has checked.',
			t.tgname, t.tgrelid::regclass),
		NULL, 'Rename it to sort before the guard, or let it fire AFTER.'
	FROM (
		SELECT g.member, max(g.name::text COLLATE "C") FROM unnest(guards) g WHERE g.kind = 'row' GROUP BY g.member
	) AS f (member, guard) JOIN pg_trigger t ON t.tgrelid = f.member
	WHERE t.tgenabled <> 'D' AND t.tgtype & 3 = 3 AND t.tgtype & 20 <> 0
		AND t.tgname::text COLLATE "C" > f.guard
		AND t.oid NOT IN (SELECT g.id FROM unnest(guards) g)
		AND NOT lockfence._follows(t.oid, members)
$$;
COMMENT ON FUNCTION lockfence._verify_neighbours(lockfence._member[], lockfence._guard[]) IS
'findings of verify(): rules and triggers that act after or instead of the guards';

-- A column is changed where it was declared.
CREATE FUNCTION lockfence._column_home(member regclass, column_name name)
RETURNS regclass
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT a.ancestor
	FROM lockfence._ancestors(member) a JOIN pg_attribute c ON c.attrelid = a.ancestor
	WHERE c.attname = column_name AND NOT c.attisdropped
	ORDER BY a.height DESC, a.ancestor LIMIT 1
$$;
COMMENT ON FUNCTION lockfence._column_home(regclass, name) IS
'the topmost table from which a table has a column';

CREATE FUNCTION lockfence._verify_token_column(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH fence AS MATERIALIZED (
		SELECT f.member, f.root, f.settings, f.settings ->> 'token_column' AS token_column
		FROM unnest(members) f
		WHERE f.settings ? 'token_column'
	)
	SELECT f.member, 'warning', 'token_column_missing',
		format('Token column "%s" of %s does not exist: every write is refused.', f.token_column, f.member),
		NULL,
		CASE
			WHEN o.column_name IS NOT NULL THEN format('If it is "%s" now, rename it back or declare the fence of %s again.',
				o.column_name, f.root)
			WHEN f.settings ? 'resource' THEN format('Declare the fence of %s again, with another token column or without one.', f.root)
			ELSE 'The marks of its rows went with it. Have the lock service raise its epoch and call lockfence.set_epoch(), before the fence is declared again.'
		END
	FROM fence f CROSS JOIN LATERAL (
			SELECT CASE count(*) WHEN 1 THEN min(attname::text) END FROM pg_attribute
			WHERE attrelid = f.member AND NOT attisdropped AND atttypid = 'lockfence.fence_token'::regtype
		) AS o (column_name)
	WHERE NOT EXISTS (
		SELECT FROM pg_attribute
		WHERE attrelid = f.member AND attname = f.token_column AND attnum > 0 AND NOT attisdropped)
	UNION ALL
	SELECT u.member, u.severity, 'token_column_unfit',
		format('Token column "%s" of %s %s', u.token_column, u.member, CASE u.fault
			WHEN 'type' THEN format('is of type %s: every write is refused.', u.type)
			WHEN 'identity' THEN 'is an identity column: it presents tokens that were granted to no holder.'
			WHEN 'default' THEN 'has a default: it presents a token that was granted to no holder.'
			ELSE 'is a generated column: every write is refused.' END),
		NULL,
		format(CASE u.fault
				WHEN 'type' THEN 'Change its type in %s to lockfence.fence_token, or name another column.'
				WHEN 'identity' THEN 'Drop the identity in %s.'
				WHEN 'default' THEN 'Drop the default in %s.'
				WHEN 'stored' THEN 'Drop the expression in %s, or name another column.'
				ELSE 'Name another column, or make it an ordinary one in %s.' END, h.home)
	FROM (
		SELECT f.*, format_type(a.atttypid, a.atttypmod), v.severity, v.fault
		FROM fence f
			JOIN pg_attribute a ON a.attrelid = f.member AND a.attname = f.token_column
				AND a.attnum > 0 AND NOT a.attisdropped
			CROSS JOIN LATERAL (VALUES
				('warning', 'type', a.atttypid NOT IN ('bigint'::regtype, 'lockfence.fence_token'::regtype)),
				('warning', 'stored', a.attgenerated = 's'),
				('warning', 'virtual', a.attgenerated NOT IN ('', 's')),
				('error', 'identity', a.attidentity <> ''),
				('error', 'default', a.atthasdef AND a.attgenerated = '')
			) AS v (severity, fault, found)
		WHERE v.found
	) AS u (member, root, settings, token_column, type, severity, fault)
		CROSS JOIN LATERAL (
			SELECT CASE u.fault WHEN 'default' THEN u.member
				ELSE lockfence._column_home(u.member, u.token_column::name) END
		) AS h (home)
	WHERE h.home = u.member OR h.home NOT IN (SELECT m.member FROM unnest(members) m)
$$;
COMMENT ON FUNCTION lockfence._verify_token_column(lockfence._member[]) IS
'findings of verify(): token columns that are not there or cannot hold tokens';

CREATE FUNCTION lockfence._verify_placeholders(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH placeholder AS MATERIALIZED (
		SELECT f.member, f.root, f.settings, p.name, a.attgenerated
		FROM unnest(members) f
			CROSS JOIN unnest(lockfence._placeholders(f.settings ->> 'resource')) AS p (name)
			LEFT JOIN pg_attribute a ON a.attrelid = f.member AND a.attname = p.name
				AND a.attnum > 0 AND NOT a.attisdropped
	)
	SELECT p.member, 'warning', 'placeholder_missing',
		format('%s has no column "%s", which its resource "%s" names: every write is refused.',
			p.member, p.name, p.settings ->> 'resource'),
		NULL, format('Rename the column back, or declare the fence of %s again with the column that holds it now in place of {%s}.',
			p.root, p.name)
	FROM placeholder p
	WHERE p.attgenerated IS NULL
	UNION ALL
	SELECT p.member, 'warning', 'placeholder_unfit',
		format('Column "%s" of %s, which its resource "%s" names, is a generated column: every write is refused.',
			p.name, p.member, p.settings ->> 'resource'),
		NULL, format('Declare the fence of %s again with the columns that it is computed from in place of {%s}, or make it an ordinary column in %s.',
			p.root, p.name, h.home)
	FROM placeholder p CROSS JOIN LATERAL lockfence._column_home(p.member, p.name) AS h (home)
	WHERE p.attgenerated <> '' AND (h.home = p.member OR h.home NOT IN (SELECT m.member FROM unnest(members) m))
	UNION ALL
	SELECT p.member, 'error', 'placeholder_unfit',
		format('Column "%s" of %s is both the token and part of the resource "%s": every token has a mark of its own.',
			p.name, p.member, p.settings ->> 'resource'),
		NULL, format('Declare the fence of %s again with another column in place of {%s}.', p.root, p.name)
	FROM placeholder p
	WHERE p.name = p.settings ->> 'token_column'
$$;
COMMENT ON FUNCTION lockfence._verify_placeholders(lockfence._member[]) IS
'findings of verify(): columns that a resource''s name needs and cannot have';

CREATE FUNCTION lockfence._verify_choices(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.member, 'error', 'row_marks_unlogged',
		format('%s is unlogged: a crash empties it of its rows and, as it has a row fence, of its marks.', f.member),
		NULL, 'Make it logged.'
	FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
	WHERE c.relkind = 'r' AND c.relpersistence = 'u' AND NOT f.settings ? 'resource'
		AND f.settings ? 'token_column'
	UNION ALL
	SELECT f.member, 'info', v.code, format('The fence of %s %s', f.member, v.problem),
		NULL, v.advice
	FROM unnest(members) f
		JOIN (VALUES
			('enforcement', 'advisory', 'is advisory: it reports stale writes and lets them pass.',
				'Declare it again as fenced, once it reports no write that is right.'),
			('missing', 'missing_allowed', 'lets writes without a token pass.',
				'Declare it again so that they are refused, once every writer presents its token.')
		) AS v (setting, code, problem, advice) ON f.settings ? v.setting
	WHERE f.member = f.root
	UNION ALL
	SELECT f.member, 'warning', 'advisory_long',
		format('The fence of %s has been advisory since %s, which is more than 30 days.',
			f.member, min(a.advisory_since)),
		NULL, 'Declare it again as fenced, or detach it.'
	FROM unnest(members) f JOIN lockfence.fences a ON a.target = f.member
	WHERE f.member = f.root AND f.settings ? 'enforcement'
		AND a.advisory_since < now() - interval '30 days'
	GROUP BY f.member, f.root, f.settings
$$;
COMMENT ON FUNCTION lockfence._verify_choices(lockfence._member[]) IS
'findings of verify(): what a fence was declared to let pass, and marks that a crash would lose';

CREATE FUNCTION lockfence._verify_validator(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH asked AS MATERIALIZED (
		SELECT f.member, f.root, f.settings, f.settings ->> 'validator' AS signature, c.relowner,
			lockfence._find_validator(f.settings ->> 'validator') AS validator
		FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
		WHERE f.settings ? 'validator'
	)
	SELECT a.member, 'warning', 'validator_missing',
		format('Validator %s of %s does not exist: every write is refused.', a.signature, a.member),
		NULL, format('Create it again, or declare the fence of %s again with another one or without.', a.root)
	FROM asked a
	WHERE a.validator IS NULL
	UNION ALL
	SELECT a.member, 'error', 'validator_unfit',
		format('Validator %s of %s is not a function of a resource and a token that returns boolean.',
			a.signature, a.member),
		NULL, format('Create it as one, or declare the fence of %s again with another one or without.', a.root)
	FROM asked a JOIN pg_proc p ON p.oid = a.validator
	WHERE NOT lockfence._is_validator(p.oid)
	UNION ALL
	SELECT a.member, 'warning', 'validator_not_executable',
		format('The owner of %s may not execute its validator %s: every write is refused.', a.member, a.signature),
		NULL, format('If it is the right validator, let "%s" execute it.', pg_get_userbyid(a.relowner))
	FROM asked a JOIN pg_proc p ON p.oid = a.validator
	WHERE NOT has_function_privilege(a.relowner, p.oid, 'EXECUTE')
	UNION ALL
	SELECT a.member, 'warning', 'validator_not_executable',
		format('The owner of %s may not use the schema of its validator %s: every write is refused.',
			a.member, a.signature),
		NULL, format('If it is the right validator, let "%s" use schema "%s".', pg_get_userbyid(a.relowner), n.nspname)
	FROM asked a JOIN pg_proc p ON p.oid = a.validator JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE NOT has_schema_privilege(a.relowner, n.oid, 'USAGE')
$$;
COMMENT ON FUNCTION lockfence._verify_validator(lockfence._member[]) IS
'findings of verify(): validators that cannot be called';

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

-- Rows are looked at, but only a few of a table, and neither for long nor where that is not allowed.
-- What else the errors are about, that is found by others.
CREATE FUNCTION lockfence._unmarked_rows(member regclass, settings jsonb, OUT lack_marks boolean, OUT are_ahead boolean)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
BEGIN
	IF NOT (has_table_privilege(member, 'SELECT') AND has_table_privilege('lockfence.mark', 'SELECT')
		AND has_table_privilege('lockfence.state', 'SELECT')) OR row_security_active(member) THEN
		RETURN;
	END IF;
	SELECT bool_or(NOT r.has_mark), bool_or(r.has_mark) INTO lack_marks, are_ahead
	FROM lockfence._rows_above_marks(member, settings ->> 'resource', settings ->> 'token_column', 100) r
	WHERE r.token > (SELECT coalesce(max(value), 0) FROM lockfence.state WHERE name = 'minimum');
EXCEPTION
	WHEN lock_not_available OR undefined_column OR feature_not_supported OR invalid_parameter_value THEN
		NULL;
	-- the marks cannot be read, which is a finding of its own
	WHEN undefined_table OR object_not_in_prerequisite_state OR data_corrupted THEN
		NULL;
END
$$;
COMMENT ON FUNCTION lockfence._unmarked_rows(regclass, jsonb) IS
'whether a row carries a token whose resource has no mark, or one above its mark, as far as a few rows show';

CREATE FUNCTION lockfence._verify_marks(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH looked_at AS MATERIALIZED (
		SELECT m.member, m.root, m.settings FROM unnest(members) m JOIN pg_class c ON c.oid = m.member
		WHERE m.is_guarded AND c.relkind = 'r' AND m.settings ?& ARRAY['resource', 'token_column']
			AND lockfence._is_on_record(m.member)
	), seen AS MATERIALIZED (
		SELECT l.root, bool_or(u.lack_marks) AS lack_marks, bool_or(u.are_ahead) AS are_ahead
		FROM looked_at l CROSS JOIN LATERAL lockfence._unmarked_rows(l.member, l.settings) u
		GROUP BY l.root
	)
	SELECT s.root, 'error', 'marks_missing',
		format('Rows of %s carry tokens of resources that have no mark, as after a restore without lockfence.mark: stale tokens pass.',
			s.root),
		CASE WHEN r.is_whole THEN format('SELECT lockfence.reconcile(%s);', lockfence._relation_literal(s.root)) END,
		CASE WHEN NOT r.is_whole THEN
			'Some of its partitions or children are not on record, and lockfence.reconcile() would put them there: see not_on_record first.' END
	FROM seen s CROSS JOIN LATERAL (
			SELECT bool_and(lockfence._is_on_record(f.member)) FROM lockfence._family(s.root) f
		) AS r (is_whole)
	WHERE s.lack_marks
	UNION ALL
	SELECT s.root, 'error', 'marks_behind',
		format('Rows of %s carry tokens above the marks of their resources, as after a write under lockfence.bypass: tokens in between can pass.',
			s.root),
		NULL, 'Call lockfence.reconcile(), unless lockfence.reset_mark() lowered a mark on purpose and the tokens in the rows are wrong.'
	FROM seen s
	WHERE s.are_ahead
	UNION ALL
	SELECT l.member, 'info', 'rows_hidden',
		format('Row-level security hides rows of %s from the current role: verify() did not check whether their marks are there.',
			l.member),
		NULL, 'Call verify() as a role that bypasses row-level security.'
	FROM looked_at l
	WHERE has_table_privilege(l.member, 'SELECT') AND row_security_active(l.member)
$$;
COMMENT ON FUNCTION lockfence._verify_marks(lockfence._member[]) IS
'findings of verify(): marks that did not come with the rows';
