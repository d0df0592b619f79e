-- The guards of each table, against those that its fence needs.

CREATE FUNCTION lockfence._verify_kin(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT o.member, 'warning', 'partitions_blocked',
		format('"%s" owns %s, and can neither create nor attach a partition of it: a partition gets the guard of the table, whose function the owner may not execute.',
			o.owner, o.member),
		NULL, format('Have a superuser make the partitions; or grant EXECUTE on lockfence.guard_row() to "%s", if it may raise the marks of all resources.', o.owner)
	FROM lockfence._owners_without_guard(ARRAY(SELECT m.member FROM unnest(members) m)) o
	UNION ALL
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
