-- The record against what is fenced: tables that came without their marks, and
-- tables that have lost their guards.

CREATE FUNCTION lockfence._is_on_record(member regclass)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT EXISTS (SELECT FROM lockfence.fenced f WHERE f.target = member)
		OR (SELECT relpersistence = 't' FROM pg_class WHERE oid = member)
$$;
COMMENT ON FUNCTION lockfence._is_on_record(regclass) IS
'whether a table is on record as fenced, or need not be';

CREATE FUNCTION lockfence._recorded(member regclass)
RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT d.settings - 'advisory_since'
	FROM lockfence.fenced f CROSS JOIN LATERAL lockfence._declared(f.arguments) d
	WHERE f.target = member
$$;
COMMENT ON FUNCTION lockfence._recorded(regclass) IS
'the settings of the fence that a table is on record with; null: none';

CREATE FUNCTION lockfence._verify_record(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH unrecorded AS MATERIALIZED (
		SELECT m.member, m.settings, EXISTS (
			SELECT FROM pg_trigger WHERE tgrelid = m.member
				AND tgfoid IN ('lockfence.guard_row()'::regprocedure, 'lockfence.guard_statement()'::regprocedure)) AS decides
		FROM unnest(members) m JOIN pg_class c ON c.oid = m.member
		WHERE m.is_guarded AND m.settings ? 'resource' AND c.relkind IN ('r', 'p')
			AND NOT lockfence._is_on_record(m.member)
	)
	SELECT u.member, 'error', 'not_on_record',
		format('%s is not on record, so its marks may not have come with it: %s.', u.member,
			CASE WHEN NOT u.decides THEN 'its fence would be sealed, and has no guard that decides on rows'
				WHEN u.settings ? 'enforcement' THEN 'its fence reports every write'
				ELSE 'its fence is sealed, and refuses every write' END),
		NULL, format(CASE WHEN u.decides
				THEN 'Restore its marks, or set the minimum by lockfence.reopen(), if the tokens in its rows do not tell them; then call lockfence.reconcile(%s).'
				ELSE 'Call lockfence.detach(%s), if it is a former partition that is no longer to be fenced.' END,
			lockfence._relation_literal(u.member))
	FROM unrecorded u
	WHERE NOT EXISTS (
		SELECT FROM pg_inherits i JOIN unrecorded p ON p.member = i.inhparent WHERE i.inhrelid = u.member)
$$;
COMMENT ON FUNCTION lockfence._verify_record(lockfence._member[]) IS
'findings of verify(): fenced tables that came without the record of their fence';
