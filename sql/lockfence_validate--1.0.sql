\echo Use "CREATE EXTENSION lockfence_validate" to load this file. \quit

CREATE FUNCTION lockfence.validate(resource text, token lockfence.fence_token)
RETURNS boolean
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'lockfence_validate';
COMMENT ON FUNCTION lockfence.validate(text, lockfence.fence_token) IS
'asks the lock service whether the token is the current one of the resource; LF008 if it cannot be asked. To be a validator: lockfence.attach(…, validator => ''lockfence.validate(text, lockfence.fence_token)'')';

CREATE FUNCTION lockfence.validate_detail(
	resource text, token lockfence.fence_token,
	OUT valid boolean, OUT epoch integer, OUT expires_in interval, OUT latency interval)
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'lockfence_validate_detail';
COMMENT ON FUNCTION lockfence.validate_detail(text, lockfence.fence_token) IS
'validate() with what else the lock service tells: its epoch, how long the grant has at least, and how long asking took; LF008 if it cannot be asked';

-- Each call is a request to the service: for fences, whose validators need no
-- privilege of the writer, and for those whom the administrator allows.
REVOKE ALL ON FUNCTION
	lockfence.validate(text, lockfence.fence_token),
	lockfence.validate_detail(text, lockfence.fence_token)
FROM PUBLIC;
