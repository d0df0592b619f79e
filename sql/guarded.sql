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

CREATE FUNCTION lockfence.guarded_insert(
	target regclass, row_values jsonb, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_guarded_insert';
COMMENT ON FUNCTION lockfence.guarded_insert(regclass, jsonb, lockfence.fence_token) IS
'inserts a row into a fenced table, under the token; columns that are not given take their defaults. Returns the number of rows: 1, or 0 if a trigger drops the row. A stale token is LF001 and never 0. Example: SELECT lockfence.guarded_insert(''payout'', ''{"batch_id": 9921, "amount": 1}'', 281474976710698)';

-- A token that comes with a write moves marks as present() does.
REVOKE ALL ON FUNCTION
	lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token),
	lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token),
	lockfence.guarded_insert(regclass, jsonb, lockfence.fence_token)
FROM PUBLIC;
