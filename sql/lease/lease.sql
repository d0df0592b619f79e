-- ---------------------------------------------------------------- leases

-- A row stays when its lease ends, as its mark does.  Pages are filled to half, and there is no index but the primary
-- key, so that a renewal is a heap-only update.
CREATE TABLE lockfence.lease (
	token lockfence.fence_token NOT NULL,
	granted_at timestamp with time zone NOT NULL,
	expires_at timestamp with time zone,
	resource text COLLATE "C" NOT NULL,
	owner text COLLATE "C",
	CONSTRAINT lease_pkey PRIMARY KEY (resource)
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE lockfence.lease IS
'the last grant of each resource that is granted here: by acquire(), or by a lock table with issue_from(). Only these write it; see the view leases';
COMMENT ON COLUMN lockfence.lease.token IS 'the token that was issued with it';
COMMENT ON COLUMN lockfence.lease.granted_at IS 'when it was granted, by the clock of the database';
COMMENT ON COLUMN lockfence.lease.expires_at IS 'when the lease ends unless it is renewed; null: the lock table decides';
COMMENT ON COLUMN lockfence.lease.resource IS 'the name of the resource, as its lock is named';
COMMENT ON COLUMN lockfence.lease.owner IS 'the holder, by the name that it gave; null: the lease was released, or the lock table names no owner';

SELECT pg_catalog.pg_extension_config_dump('lockfence.lease', '');

REVOKE ALL ON lockfence.lease FROM PUBLIC;
-- Not to PUBLIC, as the marks are not: a client could read a token and present it without being the holder, and nothing
-- would detect that.
GRANT SELECT ON lockfence.lease TO pg_monitor;

CREATE FUNCTION lockfence._is_alive(lease lockfence.lease)
RETURNS boolean
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT lease.token IS NOT NULL
		AND (lease.expires_at IS NULL OR lease.owner IS NOT NULL AND lease.expires_at > clock_timestamp())
$$;
COMMENT ON FUNCTION lockfence._is_alive(lockfence.lease) IS
'whether there is a lease that is neither released nor expired';

CREATE VIEW lockfence.leases AS
SELECT l.resource, l.owner, l.token, l.granted_at, l.expires_at, lockfence._is_alive(l) AS alive
FROM lockfence.lease l;
COMMENT ON VIEW lockfence.leases IS
'the last grant of each resource that is granted here, and whether it is alive: neither released nor expired by the clock of the database. Of a lock table the last grant is: it does not tell here when it ends';
REVOKE ALL ON lockfence.leases FROM PUBLIC;
GRANT SELECT ON lockfence.leases TO pg_monitor;

-- These read and write a row as it was committed last, whatever snapshot the transaction has (lease.c).

CREATE FUNCTION lockfence._find_lease(resource text)
RETURNS lockfence.lease
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_find_lease';
COMMENT ON FUNCTION lockfence._find_lease(text) IS
'the row of a resource in lockfence.lease, or null';

CREATE FUNCTION lockfence._lock_lease(resource text, no_wait boolean)
RETURNS lockfence.lease
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_lock_lease';
COMMENT ON FUNCTION lockfence._lock_lease(text, boolean) IS
'the same row, locked to the end of this transaction; with no_wait, 55P03 if another transaction has it';

CREATE FUNCTION lockfence._find_mark(resource text)
RETURNS lockfence.fence_token
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_find_mark';
COMMENT ON FUNCTION lockfence._find_mark(text) IS
'the mark of a resource, or null';

CREATE FUNCTION lockfence._issue_grant(resource text, mark lockfence.fence_token, no_wait boolean)
RETURNS lockfence.fence_token
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_issue_grant_sql';
COMMENT ON FUNCTION lockfence._issue_grant(text, lockfence.fence_token, boolean) IS
'issue(), above the token of the last grant; 55P03 if the mark is no longer the given one (null: there is none), or with no_wait if it would have to wait for another transaction';

CREATE FUNCTION lockfence._present(resource text, token lockfence.fence_token)
RETURNS lockfence.fence_token
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_present_issued';
COMMENT ON FUNCTION lockfence._present(text, lockfence.fence_token) IS
'present(), of a token that was issued here: for functions that run as their owner, with whose rights no validator may run';

CREATE FUNCTION lockfence._put_lease(
	token lockfence.fence_token, granted_at timestamp with time zone, expires_at timestamp with time zone,
	resource text, owner text)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_put_lease';
COMMENT ON FUNCTION lockfence._put_lease(lockfence.fence_token, timestamp with time zone, timestamp with time zone, text, text) IS
'writes the row of a resource in lockfence.lease; for a transaction that has locked it, or has issued the token';

CREATE FUNCTION lockfence._refuse_lease(resource text, token lockfence.fence_token, owner text, granted boolean)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_refuse_lease';
COMMENT ON FUNCTION lockfence._refuse_lease(text, lockfence.fence_token, text, boolean) IS
'raises LF001 and counts it: the token, or the owner, does not have the lease; granted: whether a grant of the resource is on record';

CREATE FUNCTION lockfence._count_declined()
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_count_declined';
COMMENT ON FUNCTION lockfence._count_declined() IS
'counts a request for a lease that another holder had';

CREATE FUNCTION lockfence._require_name(argument text, value text)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF value IS NULL OR octet_length(value) NOT BETWEEN 1 AND 1024 THEN
		RAISE EXCEPTION '% must be 1 to 1024 bytes long', argument
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = CASE WHEN value IS NULL THEN 'It is null.' ELSE format('It is %s bytes long.', octet_length(value)) END,
				HINT = CASE argument WHEN 'owner' THEN 'Give the holder a name that no other holder has; a host name alone is not enough.'
					ELSE 'Name the resource as its fence does.' END;
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._require_name(text, text) IS
'raises an error unless the value can be the name of a resource or an owner';

CREATE FUNCTION lockfence._require_ttl(ttl interval)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	-- in seconds, as the lease is to live: a month is not always as long as it compares
	IF ttl IS NULL OR extract(epoch FROM ttl) NOT BETWEEN 0.1 AND 2592000 THEN
		RAISE EXCEPTION 'ttl must be 100 milliseconds to 30 days'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = CASE WHEN ttl IS NULL THEN 'It is null.' ELSE format('It is %s.', ttl) END,
				HINT = 'Give the time after which another holder may take the lease over, say interval ''30 seconds'', and renew the lease every third of it.';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._require_ttl(interval) IS
'raises an error unless the value can be the time to live of a lease';

CREATE FUNCTION lockfence._require_wait(wait interval)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF wait IS NULL OR wait < interval '0' OR wait > interval '1 day' THEN
		RAISE EXCEPTION 'wait must be 0 to 1 day'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = CASE WHEN wait IS NULL THEN 'It is null.' ELSE format('It is %s.', wait) END,
				HINT = 'Give the time to wait, say interval ''5 seconds'', or 0 not to wait.';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._require_wait(interval) IS
'raises an error unless the value can be a time to wait for a grant';

CREATE FUNCTION lockfence._notify_lease(resource text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	-- not the token: every role can listen
	IF current_setting('lockfence.notify_leases')::boolean THEN
		PERFORM pg_notify('lockfence_lease', resource);
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._notify_lease(text) IS
'notifies the sessions that listen, if lockfence.notify_leases is on, that a takeover or a release ended a lease';

CREATE FUNCTION lockfence._lock_free_lease(resource text, no_wait boolean)
RETURNS lockfence.lease
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	last CONSTANT lockfence.lease := lockfence._lock_lease(resource, no_wait);
BEGIN
	IF lockfence._is_alive(last) THEN
		RAISE EXCEPTION 'resource "%" is leased', lockfence._visible(resource) USING ERRCODE = 'object_in_use';
	END IF;
	RETURN last;
END
$$;
COMMENT ON FUNCTION lockfence._lock_free_lease(text, boolean) IS
'locks the row of a resource as _lock_lease() does; 55006 if its lease is alive';

-- A grant raises the mark first.  From then on no other transaction grants the resource, and only renewals and releases
-- lock the row.  So no transaction waits for a grant while it holds what that grant waits for.
--
-- acquire() reads the mark before it sees that the lease has ended.  If the mark is still the same, no other holder was
-- granted the lease since.  So a grant neither waits for such a holder nor, with lockfence.preempt, ends its transaction.
-- A renewal raises no mark; so where a holder could be ended, the grant locks the row before.
CREATE FUNCTION lockfence._grant(resource text, owner text, ttl interval, wait interval, mark lockfence.fence_token)
RETURNS lockfence.lease
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	lock_timeout CONSTANT text := current_setting('lock_timeout');
	no_wait CONSTANT boolean := wait <= interval '0';
	granted lockfence.lease;
	before lockfence.lease;
BEGIN
	IF NOT no_wait THEN
		PERFORM set_config('lock_timeout', greatest(ceil(extract(epoch FROM wait) * 1000), 1)::integer::text, true);
	END IF;
	IF current_setting('lockfence.preempt')::boolean THEN
		PERFORM lockfence._lock_free_lease(resource, no_wait);
	END IF;
	granted.token := lockfence._issue_grant(resource, mark, no_wait);
	before := lockfence._lock_free_lease(resource, no_wait);
	PERFORM set_config('lock_timeout', lock_timeout, true);

	granted.granted_at := clock_timestamp();
	granted.expires_at := granted.granted_at + extract(epoch FROM ttl) * interval '1 second';
	granted.resource := resource;
	granted.owner := owner;
	PERFORM lockfence._put_lease(granted.token, granted.granted_at, granted.expires_at, resource, owner);
	IF before.owner IS NOT NULL THEN
		PERFORM lockfence._notify_lease(resource);
	END IF;
	RETURN granted;
END
$$;
COMMENT ON FUNCTION lockfence._grant(text, text, interval, interval, lockfence.fence_token) IS
'issues a token and records its owner and the end of the lease; 55P03 if it would have to wait longer than wait, or the mark is no longer the given one; 55006 if a lease is alive';

-- No lock is kept between attempts: an attempt that fails is rolled back.
CREATE FUNCTION lockfence.acquire(
	resource text, owner text, ttl interval, wait interval DEFAULT '0',
	OUT token lockfence.fence_token, OUT expires_at timestamp with time zone)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE ROWS 1 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	deadline timestamp with time zone;
	-- the time slept so far: a clock that is set back puts the deadline off
	slept interval := '0';
	nap interval;
	mark lockfence.fence_token;
	granted lockfence.lease;
BEGIN
	PERFORM lockfence._require_name('resource', resource), lockfence._require_name('owner', owner),
		lockfence._require_ttl(ttl), lockfence._require_wait(wait);
	deadline := clock_timestamp() + wait;
	LOOP
		mark := lockfence._find_mark(resource);
		IF NOT lockfence._is_alive(lockfence._find_lease(resource)) THEN
			BEGIN
				granted := lockfence._grant(resource, owner, ttl, least(deadline - clock_timestamp(), wait - slept), mark);
				token := granted.token;
				expires_at := granted.expires_at;
				RETURN NEXT;
				RETURN;
			EXCEPTION
				WHEN lock_not_available OR object_in_use OR deadlock_detected THEN
					NULL;
			END;
		END IF;
		nap := least(interval '20 milliseconds' + random() * interval '40 milliseconds',
			deadline - clock_timestamp(), wait - slept);
		EXIT WHEN nap <= interval '0';
		PERFORM pg_sleep(extract(epoch FROM nap));
		slept := slept + nap;
	END LOOP;
	PERFORM lockfence._count_declined();
END
$$;
COMMENT ON FUNCTION lockfence.acquire(text, text, interval, interval) IS
'leases a resource to an owner for ttl. Returns the token and when the lease expires, or no row if another lease was alive for as long as wait. From the commit on, the previous holder is refused. 22023 for an empty or overlong name, or a ttl not in 100 ms to 30 days. Example: SELECT token FROM lockfence.acquire(''report:daily'', ''worker-7'', ''30 seconds'')';

CREATE FUNCTION lockfence.renew(resource text, token lockfence.fence_token, ttl interval)
RETURNS timestamp with time zone
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	held lockfence.lease;
	until timestamp with time zone;
BEGIN
	PERFORM lockfence._require_name('resource', resource), lockfence._require_ttl(ttl);
	-- A renewal does not hold the resource: it would wait for the grant that waits for the row.  is_current() is only
	-- advice, but that is enough for what the row does not tell, such as a shut gate or a mark that an administrator has
	-- raised: writes are refused in any case.
	IF NOT lockfence.is_current(resource, token) THEN
		PERFORM lockfence._present(resource, token);
	END IF;
	held := lockfence._lock_lease(resource, false);
	IF held.owner IS NULL OR held.token <> token THEN
		PERFORM lockfence._refuse_lease(resource, token, NULL, held.token IS NOT NULL);
	ELSIF held.expires_at IS NULL THEN
		RAISE EXCEPTION 'resource "%" is granted by a lock table', lockfence._visible(resource)
			USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Renew the lock in that table.';
	END IF;
	until := clock_timestamp() + extract(epoch FROM ttl) * interval '1 second';
	PERFORM lockfence._put_lease(token, held.granted_at, until, resource, held.owner);
	RETURN until;
END
$$;
COMMENT ON FUNCTION lockfence.renew(text, lockfence.fence_token, interval) IS
'extends a lease to ttl from now, even an expired one, as long as no other holder has taken it over. Returns when it expires. LF001 if the lease no longer has this token. Example: SELECT lockfence.renew(''report:daily'', 17, ''30 seconds'')';

CREATE FUNCTION lockfence.release(resource text, token lockfence.fence_token)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	held lockfence.lease;
BEGIN
	PERFORM lockfence._require_name('resource', resource);
	held := lockfence._lock_lease(resource, false);
	IF held.owner IS NULL OR held.expires_at IS NULL OR held.token IS DISTINCT FROM token THEN
		RETURN false;
	END IF;
	PERFORM lockfence._put_lease(token, held.granted_at, least(held.expires_at, clock_timestamp()), resource, NULL),
		lockfence._notify_lease(resource);
	RETURN true;
END
$$;
COMMENT ON FUNCTION lockfence.release(text, lockfence.fence_token) IS
'ends a lease: from the commit on, another holder can acquire it. Returns false and does nothing if the lease no longer has this token. Example: SELECT lockfence.release(''report:daily'', 17)';

CREATE FUNCTION lockfence.token_of(resource text, owner text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	held lockfence.lease;
BEGIN
	PERFORM lockfence._require_name('resource', resource), lockfence._require_name('owner', owner);
	held := lockfence._find_lease(resource);
	IF held.owner IS DISTINCT FROM owner COLLATE "C" THEN
		PERFORM lockfence._refuse_lease(resource, NULL, owner, held.token IS NOT NULL);
	END IF;
	RETURN held.token;
END
$$;
COMMENT ON FUNCTION lockfence.token_of(text, text) IS
'the token of an owner''s grant of a resource, by a lease or a lock table; LF001 if the owner no longer has the grant. Example: SELECT lockfence.token_of(''report:daily'', ''worker-7'')';

-- One call asks for the token and presents it, so that no client reads the next holder's token and presents that.
CREATE FUNCTION lockfence.present_as(resource text, owner text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	token CONSTANT lockfence.fence_token := lockfence.token_of(resource, owner);
BEGIN
	PERFORM lockfence._present(resource, token);
	RETURN token;
END
$$;
COMMENT ON FUNCTION lockfence.present_as(text, text) IS
'presents the token of an owner''s grant of a resource, as present(resource, token) does, and returns it; LF001 if the owner no longer has the grant. Example: SELECT lockfence.present_as(''report:daily'', ''worker-7'')';

CREATE FUNCTION lockfence.prune_leases(older_than interval)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	pruned bigint;
BEGIN
	IF older_than IS NULL OR older_than < interval '0' THEN
		RAISE EXCEPTION 'older_than must not be null or negative'
			USING ERRCODE = 'invalid_parameter_value', HINT = 'Give an age, say interval ''90 days''.';
	END IF;
	-- the grant of a lock table has no end on record; if its mark is gone, the floor makes its token stale
	DELETE FROM lockfence.lease l
	WHERE l.expires_at < clock_timestamp() - older_than
		OR l.expires_at IS NULL AND l.granted_at < clock_timestamp() - older_than
			AND NOT EXISTS (SELECT FROM lockfence.mark m WHERE m.resource = l.resource);
	GET DIAGNOSTICS pruned = ROW_COUNT;
	RETURN pruned;
END
$$;
COMMENT ON FUNCTION lockfence.prune_leases(interval) IS
'removes leases that were released or expired that long ago, and grants of lock tables that are as old and whose marks prune() has folded. Returns how many. Marks stay; see prune(). Example: SELECT lockfence.prune_leases(''90 days'')';

REVOKE ALL ON FUNCTION
	lockfence._find_lease(text),
	lockfence._lock_lease(text, boolean),
	lockfence._find_mark(text),
	lockfence._issue_grant(text, lockfence.fence_token, boolean),
	lockfence._present(text, lockfence.fence_token),
	lockfence._put_lease(lockfence.fence_token, timestamp with time zone, timestamp with time zone, text, text),
	lockfence._refuse_lease(text, lockfence.fence_token, text, boolean),
	lockfence._notify_lease(text),
	lockfence._count_declined(),
	lockfence._lock_free_lease(text, boolean),
	lockfence._grant(text, text, interval, interval, lockfence.fence_token),
	lockfence.acquire(text, text, interval, interval),
	lockfence.renew(text, lockfence.fence_token, interval),
	lockfence.release(text, lockfence.fence_token),
	lockfence.token_of(text, text),
	lockfence.present_as(text, text),
	lockfence.prune_leases(interval)
FROM PUBLIC;
