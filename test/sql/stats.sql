-- Counters and the ring of refusals.  Without shared memory both are empty, and a server that does not
-- preload the library may have none: every line below says so or is right.
-- In a database of its own, whose counters are 0; those of other databases are not to be reset.
\set home :DBNAME
CREATE DATABASE regress_lf_stats TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C';
\c regress_lf_stats
CREATE EXTENSION lockfence;
CREATE SCHEMA test_stats;
SET search_path = test_stats, lockfence;
SET timezone = 'UTC';
SET lockfence.track = on;

-- loading again is no error, wherever the library came from
LOAD 'lockfence';

CREATE FUNCTION kept() RETURNS boolean LANGUAGE sql AS 'SELECT available FROM lockfence.stats_info()';

-- there must be memory wherever it is possible
SELECT kept() = (current_setting('shared_preload_libraries') ~ 'lockfence'
	OR current_setting('server_version_num')::int >= 170000) AS kept_where_possible;

-- What was counted for a table, other than 0, or the expected where nothing is kept.
CREATE FUNCTION counted(target regclass, expected text) RETURNS text LANGUAGE sql AS $$
SELECT CASE WHEN kept() THEN (
	SELECT string_agg(key || '=' || value, ' ' ORDER BY ordinality)
	FROM lockfence.stats s,
		LATERAL json_each_text(row_to_json(s)) WITH ORDINALITY e(key, value, ordinality)
	WHERE s.target IS NOT DISTINCT FROM counted.target
		AND key NOT IN ('target', 'last_used', 'log_suppressed') AND value <> '0')
ELSE CASE WHEN EXISTS (SELECT FROM lockfence.stats) THEN 'rows, and no memory?' ELSE expected END END
$$;

-- Does the newest refusal look so?
CREATE FUNCTION newest(code text, target regclass, resource text, token bigint, mark bigint) RETURNS boolean
LANGUAGE sql AS $$
SELECT CASE WHEN kept() THEN (
	SELECT (r.code, r.target, r.resource, r.role, r.database, r.pid) IS NOT DISTINCT FROM
			($1, $2, $3, session_user::text, current_database()::text, pg_backend_pid())
		AND (r.token, r.mark) IS NOT DISTINCT FROM ($4, $5)
		AND r.at <= clock_timestamp() AND NOT r.advisory
		AND r.application_name = current_setting('application_name')
	FROM lockfence.refusals r WHERE r.database = current_database() LIMIT 1)
ELSE NOT EXISTS (SELECT FROM lockfence.refusals) END
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

CREATE TABLE item (id int PRIMARY KEY, note text);
SELECT attach('item', 'stats/{id}', 'fence');

-- accepted, and advanced; a row's every write counts
INSERT INTO item VALUES (1, 'a', 10), (2, 'b', 10);
UPDATE item SET note = 'c', fence = 10 WHERE id = 1;
UPDATE item SET note = 'd', fence = 20 WHERE id = 1;
SELECT counted('item', 'accepted=4 advanced=3');

-- a count survives the rollback
BEGIN;
UPDATE item SET note = 'd', fence = 30 WHERE id = 1;
ROLLBACK;
SELECT counted('item', 'accepted=5 advanced=4');

-- refused: LF001
UPDATE item SET note = 'e', fence = 15 WHERE id = 1;
SELECT newest('LF001', 'item', 'stats/1', 15, 20);
SELECT counted('item', 'accepted=5 advanced=4 stale=1');

-- LF002
UPDATE item SET note = 'e' WHERE id = 1;
SELECT newest('LF002', 'item', 'stats/1', NULL, NULL);

-- LF003
UPDATE item SET note = 'e', fence = -1 WHERE id = 1;
SELECT newest('LF003', 'item', 'stats/1', -1, NULL);

-- LF006
BEGIN;
SELECT present(25);
UPDATE item SET note = 'e', fence = 26 WHERE id = 1;
ROLLBACK;
SELECT newest('LF006', 'item', 'stats/1', 26, 25);

-- LF009
TRUNCATE item;
SELECT newest('LF009', 'item', 'test_stats.item', NULL, NULL);
SELECT counted('item', 'accepted=5 advanced=4 stale=1 missing=1 invalid=1 conflicting=1 unfenceable=1');

-- LF004, and an epoch that is over, which is stale
BEGIN;
SELECT set_epoch(1, 'test');
SELECT refusal($$UPDATE item SET fence = make_token(2, 1) WHERE id = 1$$);
SELECT newest('LF004', 'item', 'stats/1', make_token(2, 1), NULL);
SELECT refusal($$UPDATE item SET fence = 40 WHERE id = 1$$);
SELECT newest('LF001', 'item', 'stats/1', 40, NULL);
ROLLBACK;
SELECT counted('item', 'accepted=5 advanced=4 stale=2 missing=1 invalid=1 unknown_epoch=1 conflicting=1 unfenceable=1');

-- LF007: the validator says no; and one that fails
CREATE FUNCTION no(text, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION broken(text, bigint) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $m$broken$m$; END';
CREATE TABLE asked (id int);
CREATE TABLE asked_in_vain (id int);
SELECT attach('asked', 'stats/asked-{id}', 'fence', validator => 'no(text, bigint)');
SELECT attach('asked_in_vain', 'stats/vain-{id}', 'fence', validator => 'broken(text, bigint)');
INSERT INTO asked VALUES (1, 5);
SELECT newest('LF007', 'asked', 'stats/asked-1', 5, NULL);
SELECT counted('asked', 'unvalidated=1 validator_calls=1');
INSERT INTO asked_in_vain VALUES (1, 5);
SELECT counted('asked_in_vain', 'validator_calls=1 validator_failures=1');
-- LF008: it cannot ask; refused, and on an advisory fence reported
CREATE FUNCTION away(text, bigint) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $m$away$m$ USING ERRCODE = $m$LF008$m$; END';
CREATE TABLE unasked (id int);
CREATE TABLE unasked_advisory (id int);
SELECT attach('unasked', 'stats/unasked-{id}', 'fence', validator => 'away(text, bigint)');
SELECT attach('unasked_advisory', 'stats/unasked-{id}', 'fence', enforcement => 'advisory', validator => 'away(text, bigint)');
INSERT INTO unasked VALUES (1, 5);
SELECT newest('LF008', 'unasked', 'stats/unasked-1', 5, NULL);
SELECT counted('unasked', 'validator_calls=1 validator_failures=1 unavailable=1');
INSERT INTO unasked_advisory VALUES (1, 5);
SELECT counted('unasked_advisory', 'advisory=1 validator_calls=1 validator_failures=1');

-- present() writes to no table
SELECT present('stats/present', 8);
SELECT present('stats/present', 8);
SELECT present('stats/present', 7);
SELECT newest('LF001', NULL, 'stats/present', 7, 8);
SELECT counted(NULL, 'accepted=2 advanced=1 stale=1');

-- a fence that lets writes without a token pass counts them
CREATE TABLE lenient (id int PRIMARY KEY);
SELECT attach('lenient', 'stats/lenient-{id}', 'fence', missing => 'allow');
INSERT INTO lenient VALUES (1), (2);
SELECT counted('lenient', 'unprotected=2');

-- an advisory fence refuses nothing: what it reports is counted apart
CREATE TABLE tried (id int PRIMARY KEY);
SELECT attach('tried', 'stats/tried-{id}', 'fence', enforcement => 'advisory');
INSERT INTO tried VALUES (1, 9), (2, NULL);
UPDATE tried SET fence = 3 WHERE id = 1;
SELECT counted('tried', 'accepted=1 advanced=1 advisory=2 advisory_stale=1');
SELECT code, advisory, token, mark FROM lockfence.refusals WHERE target = 'tried'::regclass
UNION ALL
SELECT * FROM (VALUES ('LF002', true, NULL::bigint, NULL::bigint), ('LF001', true, 3, 9)) expected WHERE NOT kept()
ORDER BY 1;

-- and verify() finds one that was forgotten: its guards say since when it is so
SELECT severity, code FROM lockfence.verify('tried') WHERE target = 'tried'::regclass;
UPDATE pg_trigger SET tgargs = decode(regexp_replace(encode(tgargs, 'escape'), 'since=\d+', 'since=2020'), 'escape')
WHERE tgrelid = 'tried'::regclass;
SELECT severity, code, remedy, advice FROM lockfence.verify('tried') WHERE target = 'tried'::regclass;
SELECT extract(year FROM advisory_since) AS year FROM lockfence.fences WHERE target = 'tried'::regclass;

-- a constant fence counts statements, a row fence rows
CREATE TABLE ledger (id int);
CREATE TABLE account (id int PRIMARY KEY);
SELECT attach('ledger', 'stats/ledger');
SELECT attach('account');
BEGIN;
SELECT present('stats/ledger', 4);
INSERT INTO ledger SELECT generate_series(1, 100);
ROLLBACK;
INSERT INTO ledger VALUES (1);
SELECT counted('ledger', 'accepted=1 missing=1');
INSERT INTO account VALUES (1, NULL), (2, NULL);
UPDATE account SET fence = 3;
UPDATE account SET fence = 2;
SELECT newest('LF001', 'account', 'test_stats.account (id)=(1)', 2, 3);
SELECT counted('account', 'accepted=2 advanced=2 stale=1');

-- bypassed
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE account SET fence = 1;
ROLLBACK;
SELECT counted('account', 'accepted=2 advanced=2 stale=1 bypassed=2');

-- off: nothing is counted or kept
SET lockfence.track = off;
UPDATE item SET note = 'e', fence = 11 WHERE id = 1;
SET lockfence.track = on;
SELECT counted('item', 'accepted=5 advanced=4 stale=2 missing=1 invalid=1 unknown_epoch=1 conflicting=1 unfenceable=1');
SELECT count(*) FROM lockfence.refusals WHERE database = current_database() AND token = 11;

-- a name that is too long to be kept is cut between characters
SELECT present(repeat('ä', 300), 9);
SELECT present(repeat('ä', 300), 8);
SELECT newest('LF001', NULL, repeat('ä', 127), 8, 9);

-- a table's counters go with it
DROP TABLE lenient;
SELECT count(*) FROM lockfence.stats WHERE unprotected > 0;

-- stats_info() tells how much is kept
SELECT kept() = (stats_reset IS NOT NULL), NOT kept() OR (refusals > 10 AND tables BETWEEN 8 AND max_tables) AS info FROM stats_info();

-- who may read what: counters everybody, the ring monitors only
SET client_min_messages = warning;
CREATE ROLE regress_lf_reader;
CREATE ROLE regress_lf_monitor IN ROLE pg_monitor;
GRANT USAGE ON SCHEMA test_stats TO regress_lf_reader, regress_lf_monitor;
RESET client_min_messages;
SELECT refusal('UPDATE test_stats.item SET fence = 11 WHERE id = 1');
SET ROLE regress_lf_reader;
SELECT kept() = EXISTS (SELECT FROM lockfence.stats WHERE stale > 0);
SELECT available = kept() FROM lockfence.stats_info();
SELECT count(*) FROM lockfence.refusals;
SELECT count(*) FROM lockfence._refusals();
SELECT lockfence.stats_reset();
SET lockfence.track = off;
SET lockfence.log_refusals = -1;
SET ROLE regress_lf_monitor;
SELECT kept() = EXISTS (SELECT FROM lockfence.refusals WHERE database = current_database());
SELECT lockfence.stats_reset();
RESET ROLE;

-- counters are given by their names, and as what they are
SELECT sum(c.stale) IS NOT DISTINCT FROM (SELECT sum(v.stale) FROM lockfence.stats v)
FROM lockfence._counters() AS c (stale bigint, database oid)
WHERE c.database = (SELECT oid FROM pg_database WHERE datname = current_database());
SELECT * FROM lockfence._counters() AS c (accepted bigint, colour bigint);
SELECT * FROM lockfence._counters() AS c (accepted text);
SELECT lockfence._counters();

-- sizes are for the server's start
SELECT refusal('SET lockfence.max_tables = 16'), refusal('SET lockfence.max_refusals = 16'), refusal('SET lockfence.max_takeovers = 16');

DROP OWNED BY regress_lf_reader, regress_lf_monitor;
DROP ROLE regress_lf_reader, regress_lf_monitor;
\c :home
DROP DATABASE regress_lf_stats;
