-- ---------------------------------------------------------------- presenting

CREATE FUNCTION lockfence.present(token lockfence.fence_token)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_present_ambient';
COMMENT ON FUNCTION lockfence.present(lockfence.fence_token) IS
'presents a token for every resource that this transaction''s later writes touch. It ends with the transaction, so in autocommit it has no effect. LF003 if it is not a token';

CREATE FUNCTION lockfence.present(resource text, token lockfence.fence_token)
RETURNS lockfence.fence_token
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_present';
COMMENT ON FUNCTION lockfence.present(text, lockfence.fence_token) IS
'presents a token for a resource: checks it, advances the mark if it is higher, and holds the resource until the transaction ends; returns the previous mark (null: none). LF001 stale, LF003 not a token, LF004 unknown epoch. Example: SELECT lockfence.present(''settle:batch-9921'', 281474976710698)';

CREATE FUNCTION lockfence.present(resource text, token lockfence.fence_token, valid_until timestamp with time zone)
RETURNS lockfence.fence_token
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_present';
COMMENT ON FUNCTION lockfence.present(text, lockfence.fence_token, timestamp with time zone) IS
'the same, of a token that counts until an instant by this server''s clock (null or infinity: without end), in this transaction. After it, writes under the token and the commit of those before are refused with LF011. A later call for the token sets another instant. Example: SELECT lockfence.present(''settle:batch-9921'', 43, now() + interval ''30 seconds'')';

CREATE FUNCTION lockfence.presented()
RETURNS TABLE (resource text, token lockfence.fence_token)
LANGUAGE c VOLATILE ROWS 10
AS 'MODULE_PATHNAME', 'lockfence_presented';
COMMENT ON FUNCTION lockfence.presented() IS
'what this transaction has presented: the token accepted for each resource, and the ambient token, whose resource is null; those of lockfence.session_grant too. LF003 if that cannot be read';

CREATE FUNCTION lockfence.is_current(resource text, token lockfence.fence_token)
RETURNS boolean
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_is_current';
COMMENT ON FUNCTION lockfence.is_current(text, lockfence.fence_token) IS
'whether the token would be accepted now. It takes no lock, so the answer is only advice; works on a standby. LF003 if it is not a token';

CREATE FUNCTION lockfence._fast_path_holders(resource text)
RETURNS integer[]
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'lockfence_fast_path_holders';
COMMENT ON FUNCTION lockfence._fast_path_holders(text) IS
'processes whose transactions hold a resource without a lock that pg_locks shows';

-- 19526 is the class of lockfence's locks, see prepared_holds.
CREATE FUNCTION lockfence.holders(resource text)
RETURNS TABLE (pid integer)
LANGUAGE sql VOLATILE STRICT ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT unnest(lockfence._fast_path_holders(resource))
	UNION
	SELECT l.pid
	FROM pg_database d
		CROSS JOIN hashtextextended(resource COLLATE "C", d.oid::bigint) AS h
		JOIN pg_locks l ON l.locktype = 'advisory' AND l.objsubid = 19526 AND l.database = d.oid
			AND l.classid::bigint = (h >> 32) & 4294967295 AND l.objid::bigint = h & 4294967295
	WHERE d.datname = current_database() AND l.granted AND l.mode = 'ShareLock'
$$;
COMMENT ON FUNCTION lockfence.holders(text) IS
'processes whose transactions were accepted at the mark of a resource and hold it until they end; null: a prepared transaction, see prepared_holds. Leaves out transactions that are raising the mark, or hold it by its row. Example: SELECT a.* FROM lockfence.holders(''settle:batch-9921'') h JOIN pg_stat_activity a USING (pid)';

REVOKE ALL ON FUNCTION
	lockfence.present(lockfence.fence_token),
	lockfence.present(text, lockfence.fence_token),
	lockfence.present(text, lockfence.fence_token, timestamp with time zone)
FROM PUBLIC;
