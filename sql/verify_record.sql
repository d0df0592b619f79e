-- Tables that came without the record of their fence, rows that came without their marks, and tables that have lost
-- their guards.

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

-- This reads rows, but only a few per table; it does not wait long for a lock, and reads nothing that the caller may not
-- read.  The errors that it passes over are findings of other functions.
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

-- A subscription to the root of a partitioned table, or to its partitions: either is the table's.  Only superusers can see
-- of which publisher a subscription is.
CREATE FUNCTION lockfence._verify_subscriptions(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH brought AS MATERIALIZED (
		SELECT r.srsubid, n.name
		FROM (VALUES ('mark'), ('state')) AS n (name) CROSS JOIN LATERAL lockfence._own_class(n.name) c
			JOIN pg_subscription_rel r ON r.srrelid = c.oid
		WHERE r.srsubstate IN ('s', 'r')
	), absent AS (
		SELECT string_agg(format('lockfence.%s', n.name), ' and ') AS names, count(*) AS n
		FROM (VALUES ('mark'), ('state')) AS n (name)
		WHERE NOT EXISTS (SELECT FROM brought b WHERE b.name = n.name)
	)
	SELECT DISTINCT m.root, CASE a.n WHEN 0 THEN 'warning' ELSE 'error' END, 'marks_not_replicated',
		format(CASE a.n
				WHEN 0 THEN '%s arrives by a subscription, and the marks by another one: if that is of another publisher, a takeover by lockfence.present() is not known here, and its stale token would pass.'
				WHEN 1 THEN '%s arrives by a subscription, and %s does not: a takeover by lockfence.present() is not known here, and its stale token would pass.'
				ELSE '%s arrives by a subscription, and %s do not: a takeover by lockfence.present() is not known here, and its stale token would pass.'
			END, m.root, a.names),
		NULL, 'Publish lockfence.mark and lockfence.state too, and refresh the subscription; or call lockfence.reopen() before applications write here.'
	FROM unnest(members) m JOIN pg_subscription_rel r ON r.srrelid = m.member CROSS JOIN absent a
	WHERE m.settings ->> 'resource' IS NOT NULL
		AND (SELECT count(*) FROM brought b WHERE b.srsubid = r.srsubid) < 2
$$;
COMMENT ON FUNCTION lockfence._verify_subscriptions(lockfence._member[]) IS
'findings of verify(): fenced tables that logical replication brings without their marks';
