-- ---------------------------------------------------------------- the marks of rows

CREATE FUNCTION lockfence._set_row_mark(
	target regclass, key jsonb, token lockfence.fence_token, lower boolean,
	OUT resource text, OUT before bigint)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_set_row_mark';
COMMENT ON FUNCTION lockfence._set_row_mark(regclass, jsonb, lockfence.fence_token, boolean) IS
'sets the mark of one row of a row fence to the token, in both directions or only up; returns the row''s name as refusals show it, and the previous mark, or null';

CREATE FUNCTION lockfence.raise_mark(
	target regclass, key jsonb, token lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	of_row record;
BEGIN
	SELECT * INTO of_row FROM lockfence._set_row_mark(target, key, token, false);
	IF of_row.before > token THEN
		PERFORM lockfence._refuse_lower(of_row.resource, of_row.before, token);
	END IF;
	PERFORM lockfence._log('raise_mark', of_row.resource, of_row.before, token, reason);
	RETURN of_row.before;
END
$$;
COMMENT ON FUNCTION lockfence.raise_mark(regclass, jsonb, lockfence.fence_token, text) IS
'force-release of one row of a row fence, which the key identifies: raises its mark, and so fences out every holder of a token up to token - 1; returns the previous mark (null: none). Waits for transactions that have written the row. Logged with the reason. Example: SELECT lockfence.raise_mark(''account'', ''{"id": 1}'', 44, ''holder 43 hangs'')';

CREATE FUNCTION lockfence.reset_mark(
	target regclass, key jsonb, token lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	of_row record;
BEGIN
	SELECT * INTO of_row FROM lockfence._set_row_mark(target, key, token, true);
	PERFORM lockfence._log('reset_mark', of_row.resource, of_row.before, token, reason);
	RETURN of_row.before;
END
$$;
COMMENT ON FUNCTION lockfence.reset_mark(regclass, jsonb, lockfence.fence_token, text) IS
'lowers the poisoned mark of one row of a row fence, which the key identifies: sets it to the token of the holder that is to write next, so that this token and every higher one are accepted; returns the previous mark. Logged with the reason';

CREATE FUNCTION lockfence.is_current(target regclass, key jsonb, token lockfence.fence_token)
RETURNS boolean
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_is_row_current';
COMMENT ON FUNCTION lockfence.is_current(regclass, jsonb, lockfence.fence_token) IS
'whether the token would be accepted now for one row of a row fence, which the key identifies; null if there is no such row. Takes SELECT on the columns of the key and on the token column';

CREATE FUNCTION lockfence.present(target regclass, key jsonb, token lockfence.fence_token)
RETURNS lockfence.fence_token
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_present_row';
COMMENT ON FUNCTION lockfence.present(regclass, jsonb, lockfence.fence_token) IS
'presents a token for one row of a row fence, which the key identifies: checks it, writes it into the row if it is higher, and locks the row until the transaction ends; returns the previous mark (null: none). LF001 stale, LF003 not a token, LF004 unknown epoch. Takes SELECT on the columns of the key and on the token column, and UPDATE on the token column. Example: SELECT lockfence.present(''account'', ''{"id": 1}'', 44)';

REVOKE ALL ON FUNCTION
	lockfence.present(regclass, jsonb, lockfence.fence_token),
	lockfence._set_row_mark(regclass, jsonb, lockfence.fence_token, boolean),
	lockfence.raise_mark(regclass, jsonb, lockfence.fence_token, text),
	lockfence.reset_mark(regclass, jsonb, lockfence.fence_token, text)
FROM PUBLIC;
