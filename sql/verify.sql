-- ---------------------------------------------------------------- verification

-- Nearly everything here reads only catalogs, and must answer in whatever state they are.

CREATE TYPE lockfence._finding AS (
	target regclass, severity text, code text, problem text, remedy text, advice text);
COMMENT ON TYPE lockfence._finding IS
'a row of verify()';

CREATE TYPE lockfence._guard AS (
	id oid, member regclass, name name, parent oid, enabled "char", kind text, proper_name name,
	is_whole boolean, has_columns boolean, has_condition boolean,
	settings jsonb, fault text);
COMMENT ON TYPE lockfence._guard IS
'a guard and what is right with it; is_whole: it fires before every event that it is there for';

CREATE TYPE lockfence._member AS (
	member regclass, root regclass, settings jsonb, kinds text[], is_guarded boolean, is_certain boolean);
COMMENT ON TYPE lockfence._member IS
'a table that verify() looks at, and its fence: the topmost table that has it (null: none), its settings and the kinds of guards it takes; is_certain: the guards of that table all declare it so, and no other trigger has the name of one';

CREATE FUNCTION lockfence._guards(tables regclass[])
RETURNS SETOF lockfence._guard
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT t.oid, t.tgrelid, t.tgname, t.tgparentid, t.tgenabled, k.kind, k.name,
		t.tgtype = k.type, t.tgattr::text <> '', t.tgqual IS NOT NULL,
		d.settings, d.fault
	FROM pg_trigger t
		JOIN (VALUES
			('row', '~lockfence_row'::name, 'lockfence.guard_row()'::regprocedure, 31),
			('statement', '~lockfence_statement', 'lockfence.guard_statement()', 30),
			('truncate', '~lockfence_truncate', 'lockfence.guard_truncate()', 34)
		) AS k (kind, name, function, type)
			ON t.tgfoid = k.function
		CROSS JOIN LATERAL lockfence._declared(lockfence._argument_list(t.tgargs, t.tgnargs)) d
	WHERE t.tgrelid = ANY (tables)
$$;
COMMENT ON FUNCTION lockfence._guards(regclass[]) IS
'the guards of some tables';

-- Fenced, or on record as fenced, or with a column or a trigger that says so.
CREATE FUNCTION lockfence._fenced_tables()
RETURNS SETOF regclass
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid::regclass
	FROM pg_class c
	WHERE c.relnamespace <> 'lockfence'::regnamespace
		AND (c.oid IN (
				SELECT tgrelid FROM pg_trigger
				WHERE lockfence._is_guard(tgfoid)
					OR tgname IN ('~lockfence_row', '~lockfence_statement', '~lockfence_truncate'))
			OR c.oid IN (SELECT f.target FROM lockfence.fenced f)
			OR c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND c.oid IN (
				SELECT attrelid FROM pg_attribute
				WHERE atttypid = 'lockfence.fence_token'::regtype AND NOT attisdropped))
$$;
COMMENT ON FUNCTION lockfence._fenced_tables() IS
'the tables that have a guard, a trigger that is named like one, or a column of type lockfence.fence_token, or are on record as fenced';

CREATE FUNCTION lockfence._ancestors(member regclass)
RETURNS TABLE (ancestor regclass, height integer)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE line AS (
		SELECT member::oid AS relid, 0 AS height
		UNION
		SELECT i.inhparent, l.height + 1
		FROM line l JOIN pg_inherits i ON i.inhrelid = l.relid
	)
	SELECT relid::regclass, max(height) FROM line GROUP BY relid
$$;
COMMENT ON FUNCTION lockfence._ancestors(regclass) IS
'a table with the tables that it is a partition of or inherits from';

-- Tables can inherit from each other along more paths than there are atoms.  So each table
-- is visited once per depth, and depths are counted from the topmost tables only.
CREATE FUNCTION lockfence._families(tables regclass[])
RETURNS SETOF regclass
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE down AS (
		SELECT t.relid::oid AS relid FROM unnest(tables) AS t (relid)
		UNION
		SELECT i.inhrelid FROM down d JOIN pg_inherits i ON i.inhparent = d.relid
	), family AS (
		SELECT relid, 0 AS depth FROM down
		WHERE relid NOT IN (SELECT i.inhrelid FROM pg_inherits i JOIN down p ON p.relid = i.inhparent)
		UNION
		SELECT i.inhrelid, f.depth + 1
		FROM family f JOIN pg_inherits i ON i.inhparent = f.relid
	)
	SELECT relid::regclass FROM family GROUP BY relid ORDER BY max(depth), relid
$$;
COMMENT ON FUNCTION lockfence._families(regclass[]) IS
'tables with their partitions and inheritance children, each once and parents first';

CREATE FUNCTION lockfence._kinds(settings jsonb)
RETURNS text[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE
		WHEN settings ? 'token_column' OR lockfence._placeholders(settings ->> 'resource') <> '{}'
			THEN ARRAY['row', 'truncate']
		WHEN lockfence._placeholders(settings ->> 'resource') = '{}' THEN ARRAY['statement', 'truncate']
		ELSE ARRAY['truncate']
	END
$$;
COMMENT ON FUNCTION lockfence._kinds(jsonb) IS
'the kinds of guards that a fence consists of, as far as its settings tell';

-- A fence reaches from its topmost table down, so the given tables are checked with
-- all tables that they are related to.
CREATE FUNCTION lockfence._relatives(tables regclass[])
RETURNS SETOF regclass
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE up AS (
		SELECT t.relid::oid FROM unnest(tables) AS t (relid)
		UNION
		SELECT i.inhparent FROM up u JOIN pg_inherits i ON i.inhrelid = u.relid
	), down AS (
		SELECT relid FROM up
		UNION
		SELECT i.inhrelid FROM down d JOIN pg_inherits i ON i.inhparent = d.relid
	)
	SELECT relid::regclass FROM down
$$;
COMMENT ON FUNCTION lockfence._relatives(regclass[]) IS
'tables with their parents and all of their partitions and children';

-- The topmost table declares the fence.  Of two guards, the stricter one counts.
CREATE FUNCTION lockfence._members(tables regclass[], guards lockfence._guard[])
RETURNS SETOF lockfence._member
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE line AS (
		SELECT t.member, t.member::oid AS ancestor, 0 AS height FROM unnest(tables) AS t (member)
		UNION
		SELECT l.member, i.inhparent, l.height + 1
		FROM line l JOIN pg_inherits i ON i.inhrelid = l.ancestor
	), rooted AS MATERIALIZED (
		SELECT DISTINCT ON (member) member, ancestor::regclass AS root, height AS depth
		FROM line
		WHERE ancestor IN (SELECT g.member FROM unnest(guards) g)
		ORDER BY member, height DESC, ancestor
	), declared AS MATERIALIZED (
		SELECT DISTINCT ON (r.root) r.root, g.settings, lockfence._kinds(g.settings) AS kinds
		FROM rooted r JOIN unnest(guards) g ON g.member = r.member
		ORDER BY r.root, g.fault IS NOT NULL, r.depth,
			(g.settings ? 'enforcement')::integer + (g.settings ? 'missing')::integer,
			g.kind = 'truncate', g.id
	), certain AS MATERIALIZED (
		SELECT g.member AS root FROM unnest(guards) g
		GROUP BY g.member HAVING bool_and(g.fault IS NULL) AND min(g.settings::text) = max(g.settings::text)
	)
	SELECT t.member, d.root, d.settings, d.kinds, t.member IN (SELECT g.member FROM unnest(guards) g),
		d.root IN (SELECT c.root FROM certain c)
			AND NOT EXISTS (SELECT FROM lockfence._impostors(ARRAY[t.member]))
	FROM unnest(tables) AS t (member)
		LEFT JOIN rooted r ON r.member = t.member
		LEFT JOIN declared d ON d.root = r.root
$$;
COMMENT ON FUNCTION lockfence._members(regclass[], lockfence._guard[]) IS
'tables with the fence of each';

-- A remedy can be run without being read: it neither widens a right, nor changes what
-- was declared, nor lets a lower token pass.  So it never calls attach() or detach(), adds
-- no column, drops nothing of others, and makes or enables a guard only if the guards of
-- the topmost table all say the same.  Everything else is advice: a sentence, not SQL.
-- Names that others have chosen get into a remedy by _identifier(), _literal() and _relation_name() alone.

CREATE FUNCTION lockfence._argument_text(settings jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(lockfence._literal(a.argument), ', ' ORDER BY a.place)
	FROM unnest(lockfence._arguments(settings)) WITH ORDINALITY AS a (argument, place)
$$;
COMMENT ON FUNCTION lockfence._argument_text(jsonb) IS
'a fence''s settings as the arguments of its triggers';

CREATE FUNCTION lockfence._create_guard(member regclass, kind text, settings jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('CREATE TRIGGER "~lockfence_%1$s" BEFORE %2$s ON %3$s FOR EACH %4$s EXECUTE FUNCTION lockfence.guard_%1$s(%5$s);',
			kind,
			CASE kind WHEN 'truncate' THEN 'TRUNCATE' ELSE 'INSERT OR UPDATE OR DELETE' END,
			lockfence._relation_name(_create_guard.member),
			CASE kind WHEN 'row' THEN 'ROW' ELSE 'STATEMENT' END,
			lockfence._argument_text(settings))
		|| string_agg(format(' ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER "~lockfence_%s";', lockfence._relation_name(f.member), kind), ''
			ORDER BY f.depth, f.member)
	FROM lockfence._family(_create_guard.member) f
	WHERE f.depth = 0 OR kind = 'row' AND (SELECT relkind = 'p' FROM pg_class WHERE oid = _create_guard.member)
$$;
COMMENT ON FUNCTION lockfence._create_guard(regclass, text, jsonb) IS
'the statements that create one guard of a fence, and with it those of the partitions that have it from their parent';

-- A partition has its row guard from its parent, and so from the parent's remedy.
CREATE FUNCTION lockfence._create_guards_of(member regclass, kinds text[], settings jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(lockfence._create_guard(member, k.kind, settings), ' ' ORDER BY k.kind)
	FROM unnest(kinds) AS k (kind)
	WHERE k.kind <> 'row' OR NOT EXISTS (
		SELECT FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent
		WHERE i.inhrelid = member AND p.relkind = 'p' AND NOT EXISTS (
			SELECT FROM pg_trigger WHERE tgrelid = p.oid AND tgfoid = 'lockfence.guard_row()'::regprocedure))
$$;
COMMENT ON FUNCTION lockfence._create_guards_of(regclass, text[], jsonb) IS
'the statements that give a table the guards that it lacks; null if its parent''s bring them';

CREATE FUNCTION lockfence._declare_anew(root regclass, settings jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('Declare the fence of %s again %s, by lockfence.detach() and lockfence.attach() in one transaction.', root,
		CASE WHEN settings ?| ARRAY['resource', 'token_column']
			THEN format('as (%s), if that is right', lockfence._argument_text(settings))
			ELSE 'with the settings that it is to have' END)
$$;
COMMENT ON FUNCTION lockfence._declare_anew(regclass, jsonb) IS
'the advice to make a fence again';

-- The trigger that a cloned trigger has its name from, on 15 and later.
CREATE FUNCTION lockfence._original(trigger oid)
RETURNS oid
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE line AS (
		SELECT oid, tgparentid FROM pg_trigger WHERE oid = trigger
		UNION ALL
		SELECT t.oid, t.tgparentid
		FROM line l JOIN pg_trigger t ON t.oid = l.tgparentid
		WHERE current_setting('server_version_num')::integer >= 150000
	)
	SELECT l.oid FROM line l WHERE NOT EXISTS (SELECT FROM line p WHERE p.oid = l.tgparentid)
$$;
COMMENT ON FUNCTION lockfence._original(oid) IS
'the trigger to rename for a trigger of a partition to be renamed';

CREATE FUNCTION lockfence._rename(trigger oid, new_name name)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('ALTER TRIGGER %s ON %s RENAME TO %s;', lockfence._identifier(tgname),
		lockfence._relation_name(tgrelid), lockfence._identifier(new_name))
	FROM pg_trigger WHERE oid = lockfence._original(trigger)
$$;
COMMENT ON FUNCTION lockfence._rename(oid, name) IS
'the statement that renames a trigger';

-- A clone is reported if the trigger that it follows is not.
CREATE FUNCTION lockfence._follows(trigger oid, members lockfence._member[])
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT EXISTS (
		SELECT FROM pg_trigger
		WHERE oid = lockfence._original(trigger) AND oid <> trigger
			AND tgrelid IN (SELECT m.member FROM unnest(members) m))
$$;
COMMENT ON FUNCTION lockfence._follows(oid, lockfence._member[]) IS
'whether a trigger is renamed along with one of another table among the given';
