-- ---------------------------------------------------------------- guarded writes

CREATE FUNCTION lockfence.guarded_update(
	target regclass, key jsonb, changes jsonb, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_guarded_update';
COMMENT ON FUNCTION lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token) IS
'updates the rows of a fenced table that match the key, under the token; returns the number of rows. A stale token is LF001 and never 0. Example: SELECT lockfence.guarded_update(''batch'', ''{"batch_id": 9921}'', ''{"state": "settled"}'', 281474976710698)';

CREATE FUNCTION lockfence.guarded_delete(
	target regclass, key jsonb, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_guarded_delete';
COMMENT ON FUNCTION lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token) IS
'deletes the rows of a fenced table that match the key, under the token; returns the number of rows. A stale token is LF001 and never 0';

-- A token that comes with a write moves marks as present() does.
REVOKE ALL ON FUNCTION
	lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token),
	lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token)
FROM PUBLIC;
