-- ---------------------------------------------------------------- administration

CREATE FUNCTION lockfence._raise_mark(resource text, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_raise_mark_sql';
COMMENT ON FUNCTION lockfence._raise_mark(text, lockfence.fence_token) IS
'raises a mark to the token if it is lower; returns what stood before, the mark or else the floor, or null';

CREATE FUNCTION lockfence._reset_mark(resource text, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_reset_mark';
COMMENT ON FUNCTION lockfence._reset_mark(text, lockfence.fence_token) IS
'sets a mark to the token, up or down; returns the mark before, or null';

CREATE FUNCTION lockfence._fold_mark(resource text, token lockfence.fence_token)
RETURNS boolean
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'lockfence_fold_mark';
COMMENT ON FUNCTION lockfence._fold_mark(text, lockfence.fence_token) IS
'removes a mark that still is the token and that no transaction holds; returns whether it did';

CREATE FUNCTION lockfence._log(action text, resource text, before bigint, after bigint, reason text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF reason IS NULL OR btrim(reason) = '' THEN
		RAISE EXCEPTION 'a reason is required'
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Say why, for whoever reads lockfence.admin_log later.';
	END IF;
	INSERT INTO lockfence.admin_log (action, resource, before, after, reason)
	VALUES (action, resource, before, after, reason);
END
$$;
COMMENT ON FUNCTION lockfence._log(text, text, bigint, bigint, text) IS
'writes a row of lockfence.admin_log; an error without a reason';

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
'sets a value of lockfence.state (null: removes it); returns the one before';

CREATE FUNCTION lockfence._refuse_lower(resource text, before bigint, token bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE EXCEPTION 'the mark of resource "%" is already higher', lockfence._visible(resource)
		USING ERRCODE = 'invalid_parameter_value',
			DETAIL = format('It is %s; the token given is %s.', before, token),
			HINT = 'Every holder below it is fenced out. Use lockfence.reset_mark() to lower a mark.';
END
$$;
COMMENT ON FUNCTION lockfence._refuse_lower(text, bigint, bigint) IS
'raises the error of a mark that is to be raised and is higher already';

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
'force-release: fences out every holder up to and including token - 1; returns the mark before (null: none). Waits for transactions that hold the resource. Logged with the reason';

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
'lowers a poisoned mark: sets it to the token of the holder that is to write next, and so lets in every token from there; returns the mark before. Logged with the reason';

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
				HINT = 'Tokens of an ended epoch must stay refused. Advance the lock service''s epoch above it.';
	END IF;
	PERFORM lockfence._log('set_epoch', NULL, before, epoch, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.set_epoch(integer, text) IS
'sets the current epoch, only forward: tokens of an earlier one are stale for every resource (LF001), of a later one unknown (LF004); returns the one before (null: any epoch was accepted). Logged with the reason';

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
'sets the floor that stands for folded marks (null: none), for when prune() folded a poisoned one, and lowers that of reopen() to it if it is higher; returns the one before. Logged with the reason';

CREATE FUNCTION lockfence.gate(
	OUT state text, OUT recorded_timeline bigint, OUT timeline bigint, OUT event text, OUT left_at pg_lsn,
	OUT reason text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_gate';
COMMENT ON FUNCTION lockfence.gate() IS
'whether the database''s history has gone back. state: open; sealed, every write to a fenced table is LF005; changed, a change was let pass and is about to go on record; standby; off, nothing is on record. The timeline on record and the current one; how it changed, where the old one was left, and why, as PostgreSQL''s history says it';

CREATE FUNCTION lockfence._record_timeline()
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_record_timeline';
COMMENT ON FUNCTION lockfence._record_timeline() IS
'puts the current timeline on record; returns the one before, or null';

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
		RAISE EXCEPTION 'the floor must be a token'
			USING ERRCODE = 'LF003', DETAIL = 'A token is always greater than zero.',
				HINT = 'Name a token above every one that the lock service has issued so far.';
	END IF;
	PERFORM lockfence._record_timeline();
	before := lockfence._set_state('minimum', floor);
	IF before > floor THEN
		RAISE EXCEPTION 'the floor cannot go back from % to %', before, floor
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Holders that it keeps out must stay out. Use lockfence.reset_floor() if it is wrong.';
	END IF;
	SELECT m.resource, m.token INTO highest FROM lockfence.mark m ORDER BY m.token DESC LIMIT 1;
	IF highest.token > floor THEN
		RAISE EXCEPTION 'the floor % is too low', floor
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('The mark of resource "%s" is %s: higher tokens have been issued.',
					lockfence._visible(highest.resource), highest.token),
				HINT = 'Name a token above every one that the lock service has issued so far, or put a poisoned mark right by lockfence.reset_mark().';
	END IF;
	SELECT value INTO current_epoch FROM lockfence.state WHERE name = 'epoch';
	IF lockfence.token_epoch(floor) > current_epoch THEN
		RAISE EXCEPTION 'the floor % is of epoch %, and the current epoch is %', floor,
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
'after the database went back: lets writes pass again (see LF005), from a token that is above every one issued so far. What is lower is stale for every resource from then on, of whatever kind of fence; returns the floor before (null: none). Also where nothing is sealed, as after a raw snapshot, which cannot be noticed. Logged with the reason';

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
		RAISE EXCEPTION 'older_than must be an interval that is not negative'
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
'folds marks that were last advanced longer ago into the floor, which then stands for every resource without a mark; returns how many. Marks that a transaction holds, or of an epoch after the current one, stay. Choose an age well above the longest time that one grant is held: renewals advance nothing';

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
