-- ---------------------------------------------------------------- administration

CREATE FUNCTION lockfence._raise_mark(resource text, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_raise_mark_sql';
COMMENT ON FUNCTION lockfence._raise_mark(text, lockfence.fence_token) IS
'raises a mark to the token if it is lower; returns the previous mark, or else the floor, or null';

CREATE FUNCTION lockfence._reset_mark(resource text, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_reset_mark';
COMMENT ON FUNCTION lockfence._reset_mark(text, lockfence.fence_token) IS
'sets a mark to the token, up or down; returns the previous mark, or null';

CREATE FUNCTION lockfence._fold_mark(resource text, token lockfence.fence_token)
RETURNS boolean
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'lockfence_fold_mark';
COMMENT ON FUNCTION lockfence._fold_mark(text, lockfence.fence_token) IS
'deletes a mark that still equals the token and that no transaction holds; returns whether it did';

CREATE FUNCTION lockfence._log(action text, resource text, before bigint, after bigint, reason text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF reason IS NULL OR btrim(reason) = '' THEN
		RAISE EXCEPTION 'a reason is required'
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Give a reason, which lockfence.admin_log keeps.';
	END IF;
	INSERT INTO lockfence.admin_log (action, resource, before, after, reason)
	VALUES (action, resource, before, after, reason);
END
$$;
COMMENT ON FUNCTION lockfence._log(text, text, bigint, bigint, text) IS
'writes a row of lockfence.admin_log; fails without a reason';

-- One row of lockfence.state, locked against other administrators.
CREATE FUNCTION lockfence._set_state(name text, value bigint)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint;
BEGIN
	LOCK TABLE lockfence.state IN SHARE ROW EXCLUSIVE MODE;
	SELECT s.value INTO before FROM lockfence.state s WHERE s.name = _set_state.name;
	IF value IS NULL THEN
		DELETE FROM lockfence.state s WHERE s.name = _set_state.name;
	ELSIF before IS NULL THEN
		INSERT INTO lockfence.state VALUES (name, value);
	ELSE
		UPDATE lockfence.state s SET value = _set_state.value WHERE s.name = _set_state.name;
	END IF;
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence._set_state(text, bigint) IS
'sets a value of lockfence.state (null: removes it); returns the previous value';

CREATE FUNCTION lockfence._refuse_lower(resource text, before bigint, token bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE EXCEPTION 'the mark of resource "%" is already higher', lockfence._visible(resource)
		USING ERRCODE = 'invalid_parameter_value',
			DETAIL = format('It is %s; the token given is %s.', before, token),
			HINT = 'Holders of lower tokens are fenced out already. Use lockfence.reset_mark() to lower a mark.';
END
$$;
COMMENT ON FUNCTION lockfence._refuse_lower(text, bigint, bigint) IS
'raises the error for a mark that is higher already than the token it is to be raised to';

CREATE FUNCTION lockfence.raise_mark(resource text, token lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint;
BEGIN
	PERFORM lockfence._check_name(resource);
	before := lockfence._raise_mark(resource, token);
	IF before > token THEN
		PERFORM lockfence._refuse_lower(resource, before, token);
	END IF;
	PERFORM lockfence._log('raise_mark', resource, before, token, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.raise_mark(text, lockfence.fence_token, text) IS
'force-release: raises a mark, and so fences out every holder of a token up to token - 1; returns the previous mark (null: none). Waits for transactions that hold the resource. Logged with the reason';

CREATE FUNCTION lockfence.reset_mark(resource text, token lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint;
BEGIN
	PERFORM lockfence._check_name(resource);
	before := lockfence._reset_mark(resource, token);
	PERFORM lockfence._log('reset_mark', resource, before, token, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.reset_mark(text, lockfence.fence_token, text) IS
'lowers a poisoned mark: sets it to the token of the holder that is to write next, so that this token and every higher one are accepted; returns the previous mark. Logged with the reason';

CREATE FUNCTION lockfence.set_epoch(epoch integer, reason text)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint;
BEGIN
	IF epoch IS NULL OR epoch NOT BETWEEN 0 AND 32767 THEN
		RAISE EXCEPTION 'epoch % is out of range', quote_nullable(epoch)
			USING ERRCODE = 'LF003', DETAIL = 'It must be from 0 to 32767.';
	END IF;
	before := lockfence._set_state('epoch', epoch);
	IF before > epoch THEN
		RAISE EXCEPTION 'the epoch cannot go back from % to %', before, epoch
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Tokens of earlier epochs must stay stale. Raise the epoch of the lock service above the current one.';
	END IF;
	PERFORM lockfence._log('set_epoch', NULL, before, epoch, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.set_epoch(integer, text) IS
'sets the current epoch, only forward: tokens of an earlier epoch are stale for every resource (LF001), tokens of a later one are unknown (LF004); returns the previous epoch (null: any was accepted). Logged with the reason';

CREATE FUNCTION lockfence.reset_floor(token lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint := lockfence._set_state('floor', token);
	minimum bigint := (SELECT value FROM lockfence.state WHERE name = 'minimum');
BEGIN
	PERFORM lockfence._log('reset_floor', NULL, before, token, reason);
	IF token IS NULL OR token < minimum THEN
		PERFORM lockfence._set_state('minimum', token);
	END IF;
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.reset_floor(lockfence.fence_token, text) IS
'sets the floor, which stands for folded marks (null: none), after prune() has folded a poisoned mark; sets the minimum to the same token if it is higher; returns the previous floor. Logged with the reason';

CREATE FUNCTION lockfence.gate(
	OUT state text, OUT recorded_timeline bigint, OUT timeline bigint, OUT event text, OUT left_at pg_lsn,
	OUT reason text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_gate';
COMMENT ON FUNCTION lockfence.gate() IS
'whether the database has gone back in time. state: open; sealed: every fenced write is refused (LF005); changed: the timeline has changed, the settings let that pass, and the next fenced write puts it on record; standby; off: no timeline is on record. Also the timeline on record and the current one; how it changed, where the server left the old one, and why, as PostgreSQL''s timeline history has it';

CREATE FUNCTION lockfence._record_timeline()
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_record_timeline';
COMMENT ON FUNCTION lockfence._record_timeline() IS
'puts the current timeline on record; returns the previous one, or null';

CREATE FUNCTION lockfence.reopen(floor lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint;
	current_epoch bigint;
	highest record;
BEGIN
	IF floor IS NULL OR floor <= 0 THEN
		RAISE EXCEPTION 'the minimum must be a token'
			USING ERRCODE = 'LF003', DETAIL = 'A token is always greater than zero.',
				HINT = 'Give a token above every token that the lock service has issued so far.';
	END IF;
	PERFORM lockfence._record_timeline();
	before := lockfence._set_state('minimum', floor);
	IF before > floor THEN
		RAISE EXCEPTION 'the minimum cannot go back from % to %', before, floor
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Holders that it fences out must stay out. Use lockfence.reset_floor() if it is wrong.';
	END IF;
	SELECT m.resource, m.token INTO highest FROM lockfence.mark m ORDER BY m.token DESC LIMIT 1;
	IF highest.token > floor THEN
		RAISE EXCEPTION 'the minimum % is too low', floor
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('The mark of resource "%s" is %s: higher tokens have been issued.',
					lockfence._visible(highest.resource), highest.token),
				HINT = 'Give a token above every token that the lock service has issued so far, or correct a poisoned mark by lockfence.reset_mark().';
	END IF;
	SELECT value INTO current_epoch FROM lockfence.state WHERE name = 'epoch';
	IF lockfence.token_epoch(floor) > current_epoch THEN
		RAISE EXCEPTION 'the minimum % is of epoch %, and the current epoch is %', floor,
			lockfence.token_epoch(floor), current_epoch
			USING ERRCODE = 'LF004',
				HINT = format('If the lock service has raised its epoch, call lockfence.set_epoch(%s, reason) first.',
					lockfence.token_epoch(floor));
	END IF;
	PERFORM lockfence._log('reopen', NULL, before, floor, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.reopen(lockfence.fence_token, text) IS
'opens the gate after the database went back in time (LF005), and sets the minimum: a token above every token issued so far. Lower tokens are stale from then on for every resource and every kind of fence; returns the previous minimum (null: none). Call it also after an event that the gate cannot see, such as the restore of a disk snapshot. Logged with the reason';

CREATE FUNCTION lockfence.prune(older_than interval)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	current_epoch bigint := (SELECT value FROM lockfence.state WHERE name = 'epoch');
	old_mark record;
	new_floor bigint;
	folded bigint := 0;
BEGIN
	IF older_than IS NULL OR older_than < interval '0' THEN
		RAISE EXCEPTION 'older_than must not be null or negative'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	LOCK TABLE lockfence.state IN SHARE ROW EXCLUSIVE MODE;
	SELECT value INTO new_floor FROM lockfence.state WHERE name = 'floor';
	FOR old_mark IN
		SELECT m.resource, m.token FROM lockfence.mark m
		WHERE m.advanced_at < now() - older_than
			AND (current_epoch IS NULL OR lockfence.token_epoch(m.token) <= current_epoch)
		ORDER BY m.resource
	LOOP
		IF lockfence._fold_mark(old_mark.resource, old_mark.token) THEN
			new_floor := greatest(new_floor, old_mark.token);
			folded := folded + 1;
		END IF;
	END LOOP;
	IF folded > 0 THEN
		PERFORM lockfence._log('prune', NULL, lockfence._set_state('floor', new_floor), new_floor,
			format('%s marks older than %s', folded, older_than));
	END IF;
	RETURN folded;
END
$$;
COMMENT ON FUNCTION lockfence.prune(interval) IS
'folds marks that were last advanced longer ago into the floor, which then stands for every resource without a mark; returns the number of marks folded. Marks that a transaction holds, and marks of an epoch after the current one, stay. Choose an age well above the longest time that one grant is held: renewals advance no mark';

REVOKE ALL ON FUNCTION
	lockfence._raise_mark(text, lockfence.fence_token),
	lockfence._reset_mark(text, lockfence.fence_token),
	lockfence._fold_mark(text, lockfence.fence_token),
	lockfence._log(text, text, bigint, bigint, text),
	lockfence._set_state(text, bigint),
	lockfence._refuse_lower(text, bigint, bigint),
	lockfence.raise_mark(text, lockfence.fence_token, text),
	lockfence.reset_mark(text, lockfence.fence_token, text),
	lockfence.set_epoch(integer, text),
	lockfence.reset_floor(lockfence.fence_token, text),
	lockfence._record_timeline(),
	lockfence.reopen(lockfence.fence_token, text),
	lockfence.prune(interval),
	lockfence.reconcile(regclass),
	lockfence._reconciled(regclass, bigint)
FROM PUBLIC;
