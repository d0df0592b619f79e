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

-- Each call is a request to the service, so only fences make them, whose validators
-- need no privilege of the writer, and roles that the administrator allows.
REVOKE ALL ON FUNCTION
	lockfence.validate(text, lockfence.fence_token),
	lockfence.validate_detail(text, lockfence.fence_token)
FROM PUBLIC;

-- Default privileges may have granted them to other roles.
DO $$
DECLARE
	grantee name;
BEGIN
	FOR grantee IN
		SELECT DISTINCT pg_catalog.pg_get_userbyid(a.grantee)
		FROM pg_catalog.pg_proc p CROSS JOIN LATERAL pg_catalog.aclexplode(p.proacl) AS a
		WHERE a.grantee OPERATOR(pg_catalog.<>) p.proowner AND p.oid OPERATOR(pg_catalog.=) ANY (ARRAY[
			'lockfence.validate(text, lockfence.fence_token)'::pg_catalog.regprocedure,
			'lockfence.validate_detail(text, lockfence.fence_token)'::pg_catalog.regprocedure])
	LOOP
		EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION lockfence.validate(text, lockfence.fence_token),'
			' lockfence.validate_detail(text, lockfence.fence_token) FROM %I', grantee);
	END LOOP;
END
$$;
