-- Leases: acquire(), renew(), release(), and whose they are.
\set SHOW_CONTEXT never
SET client_min_messages = error;
SET lockfence.track = on;
-- Runs a statement; tells what it came to.
CREATE FUNCTION try(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	code := 'accepted';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END
$$;
-- Leases, without the times; as if each were that much older.
CREATE VIEW leases AS SELECT resource, owner, token, alive FROM lockfence.leases WHERE resource LIKE 'lease:%' ORDER BY resource;
CREATE PROCEDURE grow_old(by interval) LANGUAGE sql AS $$
UPDATE lockfence.lease SET granted_at = granted_at - by, expires_at = expires_at - by
$$;
CREATE TABLE report (id int, author text);
SELECT lockfence.attach('report', 'lease:report');

-- One holder at a time.
SELECT token, expires_at - clock_timestamp() > '29 minutes' AS lives FROM lockfence.acquire('lease:report', 'one', '30 minutes');
SELECT token FROM lockfence.acquire('lease:report', 'two', '30 minutes');
-- ... not even the same one: it is not reentrant
SELECT token FROM lockfence.acquire('lease:report', 'one', '30 minutes');
SELECT token FROM lockfence.acquire('lease:other', 'two', '30 minutes');
SELECT * FROM leases;
SELECT expires_at - granted_at AS ttl FROM lockfence.leases WHERE resource = 'lease:report';

-- The job: it presents the token, or itself.
BEGIN;
SELECT lockfence.present('lease:report', 1);
INSERT INTO report VALUES (1, 'one');
COMMIT;
BEGIN;
SELECT lockfence.present_as('lease:report', 'one');
INSERT INTO report VALUES (2, 'one');
COMMIT;
SELECT lockfence.token_of('lease:report', 'one');
SELECT * FROM try($$SELECT lockfence.token_of('lease:report', 'two')$$);
SELECT * FROM try($$SELECT lockfence.present_as('lease:report', 'two')$$);
-- ... which is not said where no grant is on record
SELECT f.call, t.* FROM unnest(ARRAY['token_of(''lease:none'', ''one'')', 'present_as(''lease:none'', ''one'')', 'renew(''lease:none'', 7, ''1 hour'')']) f (call),
	try('SELECT lockfence.' || f.call) t;
SELECT count(*) FROM lockfence.mark WHERE resource = 'lease:none';

-- Renewed, from now on and not from the end.
SELECT lockfence.renew('lease:report', 1, '2 hours') - clock_timestamp() BETWEEN '119 minutes' AND '120 minutes' AS two_hours;
SELECT lockfence.renew('lease:report', 1, '1 hour') - clock_timestamp() BETWEEN '59 minutes' AND '60 minutes' AS one_hour;
SELECT token, expires_at - granted_at < '61 minutes' AS as_told FROM lockfence.leases WHERE resource = 'lease:report';
-- ... also where it has expired, if no other holder has taken it over: it may go on, since its token is the last one
CALL grow_old('2 hours');
SELECT * FROM leases WHERE resource = 'lease:report';
SELECT lockfence.token_of('lease:report', 'one');
SELECT lockfence.renew('lease:report', 1, '1 hour') > clock_timestamp() AS renewed;
SELECT * FROM leases WHERE resource = 'lease:report';
SELECT token FROM lockfence.acquire('lease:report', 'two', '30 minutes');

-- Taken over: from then on the holder before is refused, whatever it does.
CALL grow_old('2 hours');
SELECT token FROM lockfence.acquire('lease:report', 'two', '30 minutes');
SELECT code, message FROM try($$SELECT lockfence.present('lease:report', 1); INSERT INTO report VALUES (3, 'one')$$);
SELECT code, message FROM try($$SELECT lockfence.present_as('lease:report', 'one')$$);
SELECT * FROM try($$SELECT lockfence.renew('lease:report', 1, '1 hour')$$);
SELECT lockfence.release('lease:report', 1);
SELECT lockfence.is_current('lease:report', 1);
SELECT * FROM leases WHERE resource = 'lease:report';

-- Released: free for the next one, and nothing that goes on.
SELECT lockfence.release('lease:report', 2);
SELECT lockfence.release('lease:report', 2);
SELECT * FROM leases WHERE resource = 'lease:report';
SELECT code FROM try($$SELECT lockfence.renew('lease:report', 2, '1 hour')$$);
SELECT code FROM try($$SELECT lockfence.token_of('lease:report', 'two')$$);
SELECT token FROM lockfence.acquire('lease:report', 'three', '30 minutes');
-- ... a token that was never given releases and renews nothing
SELECT lockfence.release('lease:report', 4), lockfence.release('lease:report', NULL), lockfence.release('lease:none', 1);
SELECT code FROM try($$SELECT lockfence.renew('lease:report', 4, '1 hour')$$);
SELECT code FROM try($$SELECT lockfence.renew('lease:report', 2, '1 hour')$$);
SELECT code FROM try($$SELECT lockfence.renew('lease:report', NULL, '1 hour')$$);
SELECT code FROM try($$SELECT lockfence.renew('lease:none', 1, '1 hour')$$);
SELECT * FROM leases WHERE resource = 'lease:report';
-- ... nor does one whose mark was raised by other means: an administrator ends a lease for good
SELECT lockfence.raise_mark('lease:report', 100, 'test');
SELECT code FROM try($$SELECT lockfence.renew('lease:report', 3, '1 hour')$$);
SELECT code FROM try($$SELECT lockfence.present_as('lease:report', 'three')$$);
-- ... which verify() tells until the next grant
SELECT severity, code, problem, advice FROM lockfence.verify() WHERE code = 'lease_outrun';
SET ROLE pg_read_all_stats;
SELECT count(*) FROM lockfence.verify() WHERE code = 'lease_outrun';
RESET ROLE;
SELECT lockfence.release('lease:report', 3);
SELECT token FROM lockfence.acquire('lease:report', 'four', '30 minutes');
SELECT count(*) FROM lockfence.verify() WHERE code = 'lease_outrun';

-- In one transaction with what comes of it, and at every isolation level: by what was committed last.
BEGIN;
SELECT token FROM lockfence.acquire('lease:tx', 'one', '30 minutes');
SELECT lockfence.present_as('lease:tx', 'one'), lockfence.renew('lease:tx', 1, '1 hour') IS NOT NULL AS renewed;
SELECT lockfence.release('lease:tx', 1);
SELECT token FROM lockfence.acquire('lease:tx', 'two', '30 minutes');
SELECT * FROM lockfence.presented();
ROLLBACK;
SELECT * FROM leases WHERE resource = 'lease:tx';
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT token FROM lockfence.acquire('lease:tx', 'one', '30 minutes');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT lockfence.release('lease:tx', 1);
SELECT token FROM lockfence.acquire('lease:tx', 'two', '30 minutes');
COMMIT;
SELECT * FROM leases WHERE resource = 'lease:tx';
SELECT token FROM lockfence.acquire('lease:many-1', 'one', '30 minutes') UNION ALL SELECT token FROM lockfence.acquire('lease:many-1', 'two', '30 minutes');
-- ... as far as they write
BEGIN READ ONLY;
SELECT lockfence.token_of('lease:tx', 'two');
SELECT code FROM try($$SELECT lockfence.acquire('lease:tx', 'two', '30 minutes')$$);
SELECT code FROM try($$SELECT lockfence.acquire('lease:new', 'two', '30 minutes')$$);
SELECT code FROM try($$SELECT lockfence.renew('lease:tx', 2, '30 minutes')$$);
ROLLBACK;
-- The settings of the session are as before, after an attempt that failed too.
SET lock_timeout = '7s';
SELECT token FROM lockfence.acquire('lease:tx', 'three', '30 minutes', '50ms');
SELECT lockfence.release('lease:tx', 2);
SELECT token FROM lockfence.acquire('lease:tx', 'three', '30 minutes');
SHOW lock_timeout;
RESET lock_timeout;

-- A shut gate lets nothing be acquired or renewed.
BEGIN;
UPDATE lockfence.state SET value = value + 1000 WHERE name LIKE 'timeline:%';
SELECT code FROM try($$SELECT lockfence.acquire('lease:sealed', 'one', '30 minutes')$$);
SELECT code FROM try($$SELECT lockfence.renew('lease:tx', 3, '30 minutes')$$);
ROLLBACK;

-- What cannot be.
SELECT code, message, detail FROM unnest(ARRAY['NULL, ''one'', ''1 min''', ''''', ''one'', ''1 min''', 'repeat(''x'', 1025), ''one'', ''1 min''',
	'''lease:x'', NULL, ''1 min''', '''lease:x'', '''', ''1 min''', '''lease:x'', repeat(''é'', 513), ''1 min''',
	'''lease:x'', ''one'', NULL', '''lease:x'', ''one'', ''99 ms''', '''lease:x'', ''one'', ''30 days 00:00:01''', '''lease:x'', ''one'', ''-1 s''',
	'''lease:x'', ''one'', ''1 min'', NULL', '''lease:x'', ''one'', ''1 min'', ''-1 ms''', '''lease:x'', ''one'', ''1 min'', ''25 hours''']) a,
	try(format('SELECT lockfence.acquire(%s)', a));
SELECT DISTINCT code, hint FROM unnest(ARRAY['NULL, ''one'', ''1 min''', '''lease:x'', NULL, ''1 min''', '''lease:x'', ''one'', NULL', '''lease:x'', ''one'', ''1 min'', NULL']) a,
	try(format('SELECT lockfence.acquire(%s)', a)) ORDER BY hint;
SELECT code, message FROM try($$SELECT lockfence.renew('lease:tx', 3, '31 days')$$);
SELECT code, message FROM try($$SELECT lockfence.renew(NULL, 3, '1 min')$$);
SELECT code, message FROM try($$SELECT lockfence.release(NULL, 3)$$);
SELECT code, message FROM try($$SELECT lockfence.token_of('lease:tx', NULL)$$);
SELECT code, message FROM try($$SELECT lockfence.present_as(NULL, 'x')$$);
SELECT token FROM lockfence.acquire('lease:long', repeat('x', 1024), '30 days');
-- ... counted in seconds, whatever a month and a day are in the calendar
SELECT code, message FROM try($$SELECT lockfence.acquire('month', 'one', '-12 months 360 days 1 second')$$);
SELECT token FROM lockfence.acquire('month', 'one', '1 month');
SELECT expires_at - granted_at AS ttl FROM lockfence.leases WHERE resource = 'month';
SELECT lockfence.renew('month', 1, '1 month') - clock_timestamp() BETWEEN '29 days 23:00' AND '30 days' AS renewed;
SELECT token FROM lockfence.acquire(rpad('lease:', 1024, 'x'), 'one', '100 ms');

-- Tokens, and leases that were not to be had, are counted; refusals are kept.
SELECT issued, declined FROM lockfence.stats WHERE target IS NULL \gset
SELECT token FROM lockfence.acquire('lease:counted', 'one', '30 minutes');
SELECT count(*) FROM lockfence.acquire('lease:counted', 'two', '30 minutes', '30 ms');
SELECT issued - :issued AS issued, declined - :declined AS declined FROM lockfence.stats WHERE target IS NULL;
SELECT code, resource, token FROM lockfence.refusals WHERE resource LIKE 'lease:report' ORDER BY number DESC LIMIT 3;

-- Old leases can go; the tokens go on.
CALL grow_old('2 days');
SELECT lockfence.prune_leases('3 days'), lockfence.prune_leases('1 day') > 3 AS pruned;
SELECT owner = repeat('x', 1024) AS lives FROM leases;
SELECT token FROM lockfence.acquire('lease:report', 'five', '30 minutes');
SELECT code, message FROM try($$SELECT lockfence.prune_leases(NULL)$$);
SELECT code, message FROM try($$SELECT lockfence.prune_leases('-1 s')$$);

-- A mark that is lowered below the last grant: that token is not issued again, and its holder is out all the same.
SELECT token FROM lockfence.acquire('lease:lowered', 'one', '30 minutes');
SELECT lockfence.release('lease:lowered', 1);
SELECT token FROM lockfence.acquire('lease:lowered', 'two', '30 minutes');
SELECT lockfence.release('lease:lowered', 2);
SELECT lockfence.reset_mark('lease:lowered', 1, 'lowered');
SELECT token FROM lockfence.acquire('lease:lowered', 'three', '30 minutes');
SELECT code FROM try($$SELECT lockfence.present('lease:lowered', 2)$$);
-- A grant is for the mark that the caller has seen: after another grant it is none.
SELECT lockfence._find_mark('lease:lowered'), lockfence._find_mark('lease:none') IS NULL AS none;
SELECT code, message FROM try($$SELECT lockfence._issue_grant('lease:lowered', 2, false)$$);
SELECT code, message FROM try($$SELECT lockfence._issue_grant('lease:lowered', NULL, false)$$);
SELECT code, message FROM try($$SELECT lockfence._issue_grant('lease:none', 1, false)$$);
SELECT lockfence._issue_grant('lease:none', NULL, true) IS NOT NULL AS issued;

-- Only for those who may.
CREATE ROLE regress_lf_worker;
SET ROLE regress_lf_worker;
SELECT code, message FROM unnest(ARRAY['acquire(''r'', ''o'', ''1 s'')', 'renew(''r'', 1, ''1 s'')', 'release(''r'', 1)', 'token_of(''r'', ''o'')',
	'present_as(''r'', ''o'')', 'prune_leases(''1 s'')', '_find_lease(''r'')', '_lock_lease(''r'', false)', '_find_mark(''r'')', '_issue_grant(''r'', 1, true)', '_put_lease(1, now(), now(), ''r'', ''o'')', '_lock_free_lease(''r'', true)', '_grant(''r'', ''o'', ''1 s'', ''0'', 1)',
	'_notify_lease(''r'')', '_refuse_lease(''r'', 1, ''o'', true)']) f, try('SELECT lockfence.' || f);
SELECT code FROM try('SELECT FROM lockfence.leases');
SELECT code FROM try('SELECT FROM lockfence.lease');
RESET ROLE;
-- ... and they need no more than that
GRANT EXECUTE ON FUNCTION lockfence.acquire(text, text, interval, interval), lockfence.renew(text, lockfence.fence_token, interval),
	lockfence.release(text, lockfence.fence_token), lockfence.present_as(text, text) TO regress_lf_worker;
SET ROLE regress_lf_worker;
CREATE TEMP TABLE lease (token bigint, resource text);
CREATE FUNCTION pg_temp.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT 'infinity'::timestamptz$$;
SET search_path = pg_temp, pg_catalog;
SELECT token FROM lockfence.acquire('lease:worker', 'worker', '30 minutes');
SELECT lockfence.renew('lease:worker', 1, '1 hour') < 'infinity' AS renewed;
SELECT lockfence.present_as('lease:worker', 'worker'), lockfence.release('lease:worker', 1);
RESET ROLE;
RESET search_path;
-- A validator can be another role's function: it does not run with the rights of the owner of these.
CREATE FUNCTION public.say_role(text, lockfence.fence_token) RETURNS boolean LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'validator runs as %', CASE current_user WHEN 'regress_lf_worker' THEN current_user ELSE 'another role' END; END$$;
SELECT token FROM lockfence.acquire('lease:worker', 'worker', '30 minutes');
BEGIN;
SELECT lockfence.reset_mark('lease:worker', 1, 'test');
SET LOCAL lockfence.validator = 'public.say_role(text, lockfence.fence_token)';
SET LOCAL ROLE regress_lf_worker;
SELECT code, message FROM public.try($$SELECT lockfence.present_as('lease:worker', 'worker')$$);
SELECT resource, token FROM lockfence.presented() WHERE resource = 'lease:worker';
ROLLBACK;
-- (it would say so)
BEGIN;
SET LOCAL lockfence.validator = 'public.say_role(text, lockfence.fence_token)';
SELECT code, message FROM try($$SELECT lockfence.present('lease:worker', 3)$$);
ROLLBACK;
DROP FUNCTION public.say_role;
DROP OWNED BY regress_lf_worker;
DROP ROLE regress_lf_worker;
-- verify() finds grants to PUBLIC
GRANT EXECUTE ON FUNCTION lockfence.acquire(text, text, interval, interval), lockfence._grant(text, text, interval, interval, lockfence.fence_token) TO PUBLIC;
SELECT severity, code, problem, remedy, advice FROM lockfence.verify() WHERE severity <> 'info' ORDER BY code;
REVOKE EXECUTE ON FUNCTION lockfence.acquire(text, text, interval, interval), lockfence._grant(text, text, interval, interval, lockfence.fence_token) FROM PUBLIC;

-- Nothing is put on the table.
SELECT code, message FROM try('CREATE INDEX ON lockfence.lease ((owner || resource))');
SELECT code, message FROM try('ALTER TABLE lockfence.lease ADD CONSTRAINT low CHECK (token < 10)');

DROP TABLE report;
