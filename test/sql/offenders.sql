-- Refusals by table, SQLSTATE, role, application and address.  Without shared memory there are none, and a server that
-- does not preload the library may have none: every line below says so or is right.
CREATE SCHEMA test_offenders;
SET search_path = test_offenders, lockfence;
SET lockfence.track = on;

CREATE FUNCTION kept() RETURNS boolean LANGUAGE sql AS 'SELECT available FROM lockfence.stats_info()';

-- The offenders of this database that the test made, or the expected where nothing is kept.
CREATE FUNCTION offenders(expected text DEFAULT '') RETURNS SETOF text LANGUAGE sql AS $$
SELECT format('%s %s %s: %s refused, %s reported, last %s %s below %s', o.application_name, o.code, o.target, o.refused, o.reported,
	o.resource, coalesce(o.token::text, 'none'), coalesce(o.mark::text, 'none'))
FROM lockfence.offenders o
WHERE o.database = current_database() AND o.application_name LIKE 'offender%' AND kept()
UNION ALL
SELECT line FROM regexp_split_to_table(expected, E'\n') line WHERE NOT kept()
ORDER BY 1
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

CREATE TABLE item (id int PRIMARY KEY);
CREATE TABLE tried (id int PRIMARY KEY);
SELECT attach('item', 'offenders/{id}', 'fence');
SELECT attach('tried', 'offenders/tried-{id}', 'fence', enforcement => 'advisory');
INSERT INTO item VALUES (1, 20), (2, 30);
INSERT INTO tried VALUES (1, 20);

-- one row per table and SQLSTATE, with the last refusal
SET application_name = 'offender 1';
SELECT refusal('UPDATE item SET fence = 10 WHERE id = 1'), refusal('UPDATE item SET fence = 11 WHERE id = 2'),
	refusal('DELETE FROM item'), refusal($$SELECT present('offenders/1', 12)$$);
UPDATE tried SET fence = 9;
UPDATE tried SET fence = 8;
DELETE FROM tried;
SELECT * FROM offenders('offender 1 LF001 : 1 refused, 0 reported, last offenders/1 12 below 20
offender 1 LF001 item: 2 refused, 0 reported, last offenders/2 11 below 30
offender 1 LF001 tried: 0 refused, 2 reported, last offenders/tried-1 8 below 20
offender 1 LF002 item: 1 refused, 0 reported, last offenders/1 none below none
offender 1 LF002 tried: 0 refused, 1 reported, last offenders/tried-1 none below none');

-- an application of another name, and another role, has rows of its own
SET client_min_messages = warning;
CREATE ROLE regress_lf_offender;
CREATE ROLE regress_lf_monitor IN ROLE pg_monitor;
CREATE ROLE regress_lf_reader;
GRANT USAGE ON SCHEMA test_offenders TO regress_lf_offender, regress_lf_monitor;
GRANT SELECT, UPDATE ON item TO regress_lf_offender;
RESET client_min_messages;
SET application_name = 'offender 2';
SELECT refusal('UPDATE item SET fence = 10 WHERE id = 1');
SET ROLE regress_lf_offender;
SELECT refusal('UPDATE item SET fence = 13 WHERE id = 1'), refusal('UPDATE item SET fence = 14 WHERE id = 1');
RESET ROLE;
SELECT CASE WHEN kept() THEN string_agg(format('%s %s %s', role, refused, token), ', ' ORDER BY role = 'regress_lf_offender')
	ELSE session_user || ' 1 10, regress_lf_offender 2 14' END = session_user || ' 1 10, regress_lf_offender 2 14' AS by_role
FROM lockfence.offenders WHERE database = current_database() AND application_name = 'offender 2';

-- when, and in which session, the last one was
SELECT kept() = EXISTS (SELECT FROM lockfence.offenders WHERE application_name = 'offender 1' AND code = 'LF001'
	AND target = 'item'::regclass AND first_at <= last_at AND last_at <= clock_timestamp() AND pid = pg_backend_pid()) AS is_there;

-- names that a client or an owner chose come through as they are
SET application_name = E'offender 3"; \x07--';
CREATE TABLE "odd
name" (id text PRIMARY KEY);
SELECT attach('"odd
name"', '{id}', 'fence');
INSERT INTO "odd
name" VALUES (E'r"\n''x', 9);
SELECT refusal(E'UPDATE "odd\nname" SET fence = 8');
SELECT kept() = EXISTS (SELECT FROM lockfence.offenders WHERE application_name = current_setting('application_name')
	AND resource = E'r"\n''x' AND target = E'"odd\nname"'::regclass) AS is_there;

-- off: nothing is counted
SET application_name = 'offender 4';
SET lockfence.track = off;
SELECT refusal('UPDATE item SET fence = 10 WHERE id = 1');
SET lockfence.track = on;
SELECT count(*) FROM lockfence.offenders WHERE application_name = 'offender 4';

-- which role may read what
SET ROLE regress_lf_monitor;
SELECT kept() = EXISTS (SELECT FROM lockfence.offenders WHERE application_name = 'offender 1') AS monitor_reads;
SET ROLE regress_lf_reader;
SELECT count(*) FROM lockfence.offenders;
SELECT count(*) FROM lockfence._offenders();
SELECT kept, setting, (SELECT available FROM stats_info()) AND capacity > 0 AND used BETWEEN 0 AND capacity AND evicted >= 0 AS sound
FROM stats_limits()
UNION ALL
SELECT kept, 'lockfence.' || setting, true
FROM (VALUES ('tables', 'max_tables'), ('refusals of stale tokens', 'max_refusals'), ('other refusals', 'max_refusals'),
	('offenders by stale tokens', 'max_offenders'), ('other offenders', 'max_offenders'),
	('takeovers', 'max_takeovers'), ('first marks', 'max_takeovers')) AS expected (kept, setting)
WHERE NOT (SELECT available FROM stats_info());
RESET ROLE;

-- an offender whose table or role was dropped is still there, without the name
DROP TABLE "odd
name";
SELECT kept() = EXISTS (SELECT FROM lockfence.offenders WHERE resource = E'r"\n''x') AS is_there;
DROP OWNED BY regress_lf_offender, regress_lf_monitor, regress_lf_reader;
DROP ROLE regress_lf_offender, regress_lf_monitor, regress_lf_reader;
SELECT count(*) = kept()::int AS nameless FROM lockfence.offenders
WHERE database = current_database() AND application_name = 'offender 2' AND role IS NULL;

SET client_min_messages = warning;
DROP SCHEMA test_offenders CASCADE;
