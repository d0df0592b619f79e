-- As long as the tokens of a resource come only from here, its mark is the token of its last grant.  A higher mark was
-- raised by present(), raise_mark() or a call of issue() alone.  A grant writes both in one transaction, and one snapshot
-- reads both.
CREATE FUNCTION lockfence._verify_leases()
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	-- a role that may not read the marks learns nothing of them
	IF NOT has_table_privilege('lockfence.mark', 'SELECT') OR NOT has_table_privilege('lockfence.lease', 'SELECT') THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT NULL::regclass, 'warning', 'lease_outrun',
		format('The mark of %s, whose tokens are issued by %s, was raised to %s by other means: the grant of token %s is refused.',
			lockfence._visible(quote_literal(m.resource)), CASE WHEN l.expires_at IS NULL THEN 'a lock table' ELSE 'leases' END, m.token, l.token),
		NULL::text,
		'Let the tokens of a resource come from one place, its leases or its lock table. If an administrator raised the mark, the next grant is above it.'
	FROM lockfence.mark m JOIN lockfence.lease l ON l.resource = m.resource
	WHERE m.token > l.token;
END
$$;
COMMENT ON FUNCTION lockfence._verify_leases() IS
'findings of verify(): resources whose tokens are issued here, and whose marks other tokens have raised';
