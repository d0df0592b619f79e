-- ---------------------------------------------------------------- tokens

-- No CHECK: adding a column of a constrained domain would rewrite the table.
CREATE DOMAIN lockfence.fence_token AS bigint;
COMMENT ON DOMAIN lockfence.fence_token IS
'fencing token: epoch (0..32767) * 2^48 + revision (0..2^48-1), always greater than 0; the fence refuses other values with LF003';

CREATE FUNCTION lockfence.make_token(epoch integer, revision bigint)
RETURNS lockfence.fence_token
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_make_token';
COMMENT ON FUNCTION lockfence.make_token(integer, bigint) IS
'the token of an epoch (0..32767) and a revision (0..2^48-1); LF003 if either is out of range or null, or both are 0. Example: lockfence.make_token(1, 42)';

CREATE FUNCTION lockfence.token_epoch(token lockfence.fence_token)
RETURNS integer
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_token_epoch_sql';
COMMENT ON FUNCTION lockfence.token_epoch(lockfence.fence_token) IS
'the epoch of a token, 0..32767; LF003 if the token is not greater than 0';

CREATE FUNCTION lockfence.token_revision(token lockfence.fence_token)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_token_revision_sql';
COMMENT ON FUNCTION lockfence.token_revision(lockfence.fence_token) IS
'the revision of a token, 0..2^48-1; LF003 if the token is not greater than 0';
