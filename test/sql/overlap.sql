-- How late stale tokens come.  Without shared memory nothing is measured: every line below says so or is right.
CREATE SCHEMA test_overlap;
SET search_path = test_overlap, lockfence;
SET client_min_messages = warning;
SET lockfence.track = on;
CREATE FUNCTION kept() RETURNS boolean LANGUAGE sql AS 'SELECT available FROM lockfence.stats_info()';

-- Has the table (null: present()) these counts?  From the first bucket to the last; then all, and the unknown ones.
CREATE FUNCTION measured(target regclass, VARIADIC expected bigint[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found bigint[] := (
		SELECT ARRAY[within_100ms, within_1s, within_10s, within_1min, within_10min, within_1h, o.measured, unknown]
		FROM lockfence.overlap o WHERE o.target IS NOT DISTINCT FROM measured.target);
BEGIN
	RETURN CASE WHEN found IS NOT DISTINCT FROM CASE WHEN kept() THEN expected END THEN 'as expected' ELSE found::text END;
END
$$;

-- Makes a mark that has been raised so long ago, and is not among the last takeovers.
CREATE FUNCTION raised(resource text, token bigint, ago interval) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL lockfence.track = off;
	PERFORM lockfence.present(resource, token);
	ALTER TABLE lockfence.mark DISABLE TRIGGER "~lockfence_mark";
	UPDATE lockfence.mark m SET advanced_at = now() - ago WHERE m.resource = raised.resource;
	ALTER TABLE lockfence.mark ENABLE ALWAYS TRIGGER "~lockfence_mark";
END
$$;

-- Runs a statement that is refused; tells its SQLSTATE.
CREATE FUNCTION refusal(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate;
END
$$;

-- Each time counts in every bucket that is long enough for it.  The clock may have been set back: that is none.
CREATE TABLE item (id int PRIMARY KEY);
SELECT attach('item', 'overlap/{id}', 'fence');
INSERT INTO item SELECT g, 10 FROM generate_series(1, 6) g;
SELECT raised('overlap/1', 20, '2 s'), raised('overlap/2', 20, '20 s'), raised('overlap/3', 20, '5 min'),
	raised('overlap/4', 20, '30 min'), raised('overlap/5', 20, '10 d'), raised('overlap/6', 20, '-1 d');
SELECT refusal(format('UPDATE item SET fence = 11 WHERE id = %s', g)) FROM generate_series(1, 6) g;
SELECT measured('item', 1, 1, 2, 3, 4, 5, 6, 0);
SELECT NOT kept() OR total_seconds BETWEEN 866122 AND 866182 AND max_seconds BETWEEN 864000 AND 864060 AS seconds
FROM (SELECT true) t LEFT JOIN lockfence.overlap o ON o.target = 'item'::regclass;
-- a stale present() is late too, though it writes to no table
SELECT measured AS before FROM lockfence.overlap WHERE target IS NULL
UNION ALL
SELECT 0
LIMIT 1 \gset
SELECT refusal($$SELECT present('overlap/3', 19)$$);
SELECT NOT kept() OR measured = :before + 1 AS of_no_table FROM (SELECT true) t LEFT JOIN lockfence.overlap o ON o.target IS NULL;

-- The takeover that put the token out counts, not the last one; and what an advisory fence lets pass.
CREATE TABLE tried (id int PRIMARY KEY);
SELECT attach('tried', 'overlap/tried-{id}', 'fence', enforcement => 'advisory');
INSERT INTO tried VALUES (1, 10);
SELECT clock_timestamp() AS began \gset
SELECT present('overlap/tried-1', 20);
SELECT pg_sleep(1.1);
SELECT present('overlap/tried-1', 30), present('overlap/tried-1', 31);
UPDATE tried SET fence = 15;
SELECT measured('tried', 0, 0, 1, 1, 1, 1, 1, 0);
SELECT NOT kept() OR max_seconds BETWEEN 1.1 AND extract(epoch FROM clock_timestamp() - :'began')::float8 AS seconds
FROM (SELECT true) t LEFT JOIN lockfence.overlap o ON o.target = 'tried'::regclass;
-- of a token in between, that which came after it
UPDATE tried SET fence = 20;
SELECT NOT kept() OR total_seconds - max_seconds <= extract(epoch FROM clock_timestamp() - :'began')::float8 - 1.1 AS shorter
FROM (SELECT true) t LEFT JOIN lockfence.overlap o ON o.target = 'tried'::regclass;
-- a mark that was too high and has been lowered since does not count
SELECT raise_mark('overlap/lowered', 1000, 'test');
SELECT pg_sleep(1.1);
SELECT clock_timestamp() AS lowered \gset
SELECT reset_mark('overlap/lowered', 10, 'test'), present('overlap/lowered', 20);
CREATE TABLE lowered (id text PRIMARY KEY);
SELECT attach('lowered', 'overlap/{id}');
SELECT refusal($$SELECT guarded_delete('lowered', '{"id": "lowered"}', 15)$$);
SELECT NOT kept() OR measured = 1 AND max_seconds <= extract(epoch FROM clock_timestamp() - :'lowered')::float8 AS since_lowered
FROM (SELECT true) t LEFT JOIN lockfence.overlap o ON o.target = 'lowered'::regclass;

-- A row does not tell when its mark rose: only the last takeovers do.
CREATE TABLE account (id int PRIMARY KEY);
SELECT attach('account');
INSERT INTO account VALUES (1, 20), (2, NULL);
SELECT refusal('UPDATE account SET fence = 19 WHERE id = 1');
SELECT measured('account', 0, 0, 0, 0, 0, 0, 0, 1);
UPDATE account SET fence = 30;
SELECT pg_sleep(1.1);
SELECT refusal('UPDATE account SET fence = 29 WHERE id = 2');
SELECT measured('account', 0, 0, 1, 1, 1, 1, 1, 1);
-- also for a role that may not read the key
CREATE ROLE regress_lf_blind;
GRANT USAGE ON SCHEMA test_overlap TO regress_lf_blind;
GRANT UPDATE, SELECT (fence) ON account TO regress_lf_blind;
SET ROLE regress_lf_blind;
SELECT refusal('UPDATE account SET fence = 29');
RESET ROLE;
SELECT measured('account', 0, 0, 2, 2, 2, 2, 2, 1);
-- but not without a key
CREATE TABLE keyless (note text);
SELECT attach('keyless');
INSERT INTO keyless VALUES ('a');
UPDATE keyless SET fence = 5;
SELECT refusal('UPDATE keyless SET fence = 4');
SELECT measured('keyless', 0, 0, 0, 0, 0, 0, 0, 1);
-- a resource that is named as a row of it is another
INSERT INTO account VALUES (3, 50);
SELECT present('test_overlap.account (id)=(3)', 100);
SELECT refusal('UPDATE account SET fence = 49 WHERE id = 3');
SELECT measured('account', 0, 0, 2, 2, 2, 2, 2, 2);

-- Not late: a token that is used twice, one that this transaction has passed itself.  Not known: a floor, an epoch.
CREATE TABLE once (id int PRIMARY KEY);
SELECT attach('once', 'overlap/once-{id}', 'fence', repeat => 'reject');
INSERT INTO once VALUES (1, 10);
SELECT refusal('UPDATE once SET fence = 10');
SELECT measured('once', 0, 0, 0, 0, 0, 0, 0, 0);
SELECT refusal($$SELECT guarded_delete('once', '{"id": 1}', 9)$$);
BEGIN;
SELECT set_epoch(1, 'test');
SELECT refusal($$SELECT guarded_delete('once', '{"id": 2}', 9)$$);
ROLLBACK;
SELECT NOT kept() OR measured = 1 AND unknown = 1 AS epoch FROM (SELECT true) t LEFT JOIN lockfence.overlap o ON o.target = 'once'::regclass;
BEGIN;
SELECT present('overlap/own', 30);
SELECT refusal($$SELECT guarded_delete('lowered', '{"id": "own"}', 29)$$);
ROLLBACK;
SELECT NOT kept() OR measured = 1 AND unknown = 1 AS own FROM (SELECT true) t LEFT JOIN lockfence.overlap o ON o.target = 'lowered'::regclass;

-- Codes other than LF001 are not late; off, nothing is measured.
CREATE TABLE quiet (id int PRIMARY KEY);
SELECT attach('quiet', 'overlap/quiet-{id}', 'fence');
INSERT INTO quiet VALUES (1, 10);
SELECT refusal('UPDATE quiet SET id = id'), refusal('UPDATE quiet SET fence = 0');
SELECT measured('quiet', 0, 0, 0, 0, 0, 0, 0, 0);
SET lockfence.track = off;
SELECT refusal('UPDATE quiet SET fence = 9');
SET lockfence.track = on;
SELECT measured('quiet', 0, 0, 0, 0, 0, 0, 0, 0);

-- Every role may read it, as it may the counters.
SET ROLE regress_lf_blind;
SELECT count(*) > 0 OR NOT kept() AS readable FROM (SELECT true) t, lockfence.overlap;
RESET ROLE;

DROP OWNED BY regress_lf_blind;
DROP ROLE regress_lf_blind;
DROP SCHEMA test_overlap CASCADE;
