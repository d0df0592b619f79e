-- ---------------------------------------------------------------- verification of issuers

-- The trigger of each table that issues, or is on record as issuing, against what was declared.  A partition has its
-- parent's trigger.
CREATE FUNCTION lockfence._verify_issuer_triggers(tables regclass[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH trigger AS MATERIALIZED (
		SELECT t.*, t.definition = i.definition AS is_declared
		FROM lockfence._issuer_triggers(tables) t LEFT JOIN lockfence.issuer i ON i.target::oid = t.target
	)
	SELECT c.oid::regclass, 'error', 'issuer_missing',
		format('Lock table "%s" no longer issues tokens: a session that takes the lock over does not shut out the previous holder.', c.oid::regclass),
		NULL, 'Declare it again by lockfence.issue_from(), or end it for good by lockfence.stop_issuing().'
	FROM lockfence.issuer i JOIN pg_class c ON c.oid = i.target
	WHERE (tables IS NULL OR c.oid = ANY (tables)) AND c.oid NOT IN (SELECT t.target FROM trigger t)
	UNION ALL
	SELECT t.target, 'error', 'issuer_altered',
		format('Trigger "%s" of lock table "%s" is not as lockfence.issue_from() made it: it may issue a token without a grant, or grant without a token.', t.name, t.target),
		NULL, 'Declare it again by lockfence.stop_issuing() and lockfence.issue_from() in one transaction.'
	FROM trigger t WHERE NOT t.is_cloned AND NOT t.is_declared
	UNION ALL
	SELECT t.target, 'warning', 'issuer_not_on_record',
		format('Trigger "%s" of table "%s" issues tokens, but lockfence.issue_from() has not declared it in this database.', t.name, t.target),
		NULL, 'Declare it by lockfence.stop_issuing() and lockfence.issue_from() in one transaction, or drop it.'
	FROM trigger t WHERE NOT t.is_cloned AND t.is_declared IS NULL
	UNION ALL
	SELECT t.target, 'error', CASE t.enabled WHEN 'D' THEN 'issuer_disabled' ELSE 'issuer_not_always' END,
		format('Trigger "%s" of lock table "%s" does not fire %s: grants without a token do not shut out the previous holder.',
			t.name, t.target, CASE t.enabled WHEN 'D' THEN 'at all' WHEN 'R' THEN 'except for replicated changes' ELSE 'for sessions with session_replication_role = replica' END),
		CASE WHEN t.is_cloned OR t.is_declared THEN format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %s;',
			lockfence._relation_name(t.target), lockfence._identifier(t.name)) END,
		CASE WHEN t.is_cloned OR t.is_declared THEN NULL ELSE 'Declare it by lockfence.stop_issuing() and lockfence.issue_from() in one transaction.' END
	FROM trigger t WHERE t.enabled <> 'A'
$$;
COMMENT ON FUNCTION lockfence._verify_issuer_triggers(regclass[]) IS
'findings of verify(): triggers of lock tables that are missing, or not as they were declared';

CREATE FUNCTION lockfence._verify_issuer_tables(tables regclass[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT t.target, 'error', 'issuer_columns',
		format('Lock table "%s" has no column "%s", which names what it grants: no lock can be granted.', t.target, c.name),
		NULL, 'Declare it again by lockfence.stop_issuing() and lockfence.issue_from() in one transaction.'
	FROM lockfence._issuer_triggers(tables) t
		CROSS JOIN unnest('{resource,owner}'::text[]) AS s (setting)
		CROSS JOIN LATERAL unnest(lockfence._placeholders(
			lockfence._issuer_argument(t.arguments, s.setting))) AS c (name)
	WHERE NOT EXISTS (
		SELECT FROM pg_attribute a WHERE a.attrelid = t.target AND a.attname = c.name AND a.attnum > 0 AND NOT a.attisdropped)
	UNION ALL
	SELECT DISTINCT t.target, 'warning', 'issuer_fenced',
		format('Lock table "%s" is also fenced: its fence decides on attempts that then fail, and so can shut out live holders.', t.target),
		NULL, 'Fence the tables that the lock protects, and take the fence off the lock table by lockfence.detach().'
	FROM lockfence._issuer_triggers(tables) t JOIN pg_trigger g ON g.tgrelid = t.target
	WHERE lockfence._is_guard(g.tgfoid)
	UNION ALL
	SELECT DISTINCT t.target, 'error', 'issuer_children',
		format('Other tables inherit from lock table "%s": grants of their rows issue no tokens, and do not put the holder before out.', t.target),
		NULL, 'Keep all locks in the lock table itself, and take the others off by ALTER TABLE ... NO INHERIT.'
	FROM lockfence._issuer_triggers(tables) t JOIN pg_class c ON c.oid = t.target
	WHERE c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = t.target)
$$;
COMMENT ON FUNCTION lockfence._verify_issuer_tables(regclass[]) IS
'findings of verify(): lock tables that cannot issue, or not for all of their rows, or are fenced themselves';

-- Called by verify(), which finds it by its name.
CREATE FUNCTION lockfence._verify_issuers(target regclass)
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	tables regclass[] := CASE WHEN target IS NOT NULL THEN ARRAY(SELECT lockfence._families(ARRAY[target])) END;
BEGIN
	RETURN QUERY SELECT f.* FROM (
		SELECT t.* FROM lockfence._verify_issuer_triggers(tables) t
		UNION ALL SELECT t.* FROM lockfence._verify_issuer_tables(tables) t
		UNION ALL SELECT t.* FROM lockfence._verify_leases() t WHERE tables IS NULL) AS f
	ORDER BY f.target::text COLLATE "C", f.code, f.problem;
END
$$;
COMMENT ON FUNCTION lockfence._verify_issuers(regclass) IS
'findings of verify() about a lock table with its partitions as an issuer of tokens; null: about all, and all leases';
