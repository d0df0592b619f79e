-- The last changes of marks: who took over from which token, by which way.  Without shared memory there are none, and
-- a server that does not preload the library may have none: every line below says so or is right.
CREATE SCHEMA test_takeovers;
SET search_path = test_takeovers, lockfence;
SET client_min_messages = warning;
SET lockfence.track = on;
CREATE FUNCTION kept() RETURNS boolean LANGUAGE sql AS 'SELECT available FROM lockfence.stats_info()';

-- Checks the changes since the last call, oldest first, against what is expected of them; true as well where none are
-- kept.  They are of this session, at a time that has passed.
CREATE TABLE seen AS SELECT coalesce(max(number), 0) AS number FROM lockfence.takeovers;
CREATE FUNCTION changed(VARIADIC expected text[] DEFAULT '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found text[];
	ok boolean;
BEGIN
	SELECT coalesce(array_agg(concat_ws(' ', t.target, t.resource, coalesce(t.before::text, '-'), t.token, t.way) ORDER BY t.number), '{}'),
		coalesce(bool_and((t.role, t.database, t.application_name, t.pid, t.prepared) IS NOT DISTINCT FROM
			(current_user::name, current_database(), current_setting('application_name'), pg_backend_pid(), false)
			AND t.at <= clock_timestamp()), true)
	INTO found, ok FROM lockfence.takeovers t WHERE t.database = current_database() AND t.number > (SELECT s.number FROM seen s);
	UPDATE seen SET number = coalesce((SELECT max(t.number) FROM lockfence.takeovers t), number);
	IF NOT kept() THEN
		RETURN CASE WHEN found = '{}' THEN 'as expected' ELSE 'rows, and no memory?' END;
	END IF;
	RETURN CASE WHEN found = expected AND ok THEN 'as expected' ELSE format('%s (%s)', found, ok) END;
END
$$;

-- by which way
CREATE TABLE item (id int PRIMARY KEY, note text);
SELECT attach('item', 'takeovers/{id}', 'fence');
INSERT INTO item VALUES (1, 'a', 10);
SELECT changed('item takeovers/1 - 10 column');
UPDATE item SET note = 'b', fence = 11 WHERE id = 1;
SELECT changed('item takeovers/1 10 11 column');
SELECT present('takeovers/1', 12);
SELECT changed('takeovers/1 11 12 present');
BEGIN;
SELECT present(13);
UPDATE item SET note = 'c' WHERE id = 1;
COMMIT;
SELECT changed('item takeovers/1 12 13 present');
SELECT guarded_update('item', '{"id": 1}', '{"note": "d"}', 14);
SELECT changed('item takeovers/1 13 14 guarded');
SELECT issue('takeovers/1');
SELECT changed('takeovers/1 14 15 issue');
SELECT raise_mark('takeovers/1', 100, 'test');
SELECT changed('takeovers/1 15 100 raise_mark');
SELECT reset_mark('takeovers/1', 20, 'test');
SELECT changed('takeovers/1 100 20 reset_mark');
INSERT INTO lockfence.mark VALUES (21, now(), 'takeovers/1');
SELECT changed('takeovers/1 20 21 restore');
ALTER TABLE item DISABLE TRIGGER USER;
UPDATE item SET fence = 30 WHERE id = 1;
ALTER TABLE item ENABLE ALWAYS TRIGGER "~lockfence_row";
ALTER TABLE item ENABLE ALWAYS TRIGGER "~lockfence_truncate";
SELECT reconcile('item');
SELECT changed('takeovers/1 21 30 raise_mark');

-- what raises no mark is no takeover: the same token, a refused one, a mark that stays as it is
UPDATE item SET note = 'e', fence = 30 WHERE id = 1;
UPDATE item SET note = 'e', fence = 29 WHERE id = 1;
SELECT reset_mark('takeovers/1', 30, 'test');
SELECT changed();

-- the mark of a row is in the row; one that is inserted has no holder to take over from
CREATE TABLE account (id int, part int, note text, PRIMARY KEY (part, id)) PARTITION BY LIST (part);
CREATE TABLE account_1 PARTITION OF account FOR VALUES IN (1);
CREATE TABLE account_2 PARTITION OF account FOR VALUES IN (2);
SELECT attach('account');
INSERT INTO account VALUES (1, 1, 'a', 5), (2, 1, 'a', NULL);
SELECT changed();
UPDATE account SET note = 'b', fence = 6 WHERE id = 1;
UPDATE account SET note = 'b', fence = 6;
SELECT changed('account_1 test_takeovers.account_1 (part, id)=(1, 1) 5 6 column',
	'account_1 test_takeovers.account_1 (part, id)=(1, 2) - 6 column');
SELECT guarded_update('account', '{"part": 1, "id": 1}', '{"note": "c"}', 7);
SELECT raise_mark('account', '{"part": 1, "id": 1}', 90, 'test');
SELECT reset_mark('account', '{"part": 1, "id": 1}', 8, 'test');
SELECT changed('account_1 test_takeovers.account_1 (part, id)=(1, 1) 6 7 guarded',
	'account_1 test_takeovers.account_1 (part, id)=(1, 1) 7 90 raise_mark',
	'account_1 test_takeovers.account_1 (part, id)=(1, 1) 90 8 reset_mark');
-- without a primary key the name of its table is all that a row has
CREATE TABLE keyless (note text);
SELECT attach('keyless');
INSERT INTO keyless VALUES ('a');
UPDATE keyless SET fence = 5;
SELECT changed('keyless test_takeovers.keyless - 5 column');
-- a row that moves is taken over once
UPDATE account SET part = 2, fence = 9 WHERE id = 1;
SELECT changed('account_1 test_takeovers.account_1 (part, id)=(1, 1) 8 9 column');

-- what is rolled back is no takeover: the transaction, to a savepoint, in a subtransaction of another
BEGIN;
SELECT present('takeovers/1', 40);
ROLLBACK;
BEGIN;
SAVEPOINT a;
SELECT present('takeovers/1', 41);
SAVEPOINT b;
SELECT present('takeovers/2', 1);
RELEASE b;
ROLLBACK TO a;
SELECT present('takeovers/1', 42);
RELEASE a;
SAVEPOINT c;
SELECT present('takeovers/3', 1);
ROLLBACK TO c;
COMMIT;
SELECT changed('takeovers/1 30 42 present');

-- two in one transaction are two
BEGIN;
SELECT present('takeovers/1', 43), present('takeovers/1', 44);
SELECT changed();
COMMIT;
SELECT changed('takeovers/1 42 43 present', 'takeovers/1 43 44 present');

-- a transaction of many has its first here, and how many more there are; rolled back, they do not count
SELECT count(present('takeovers/many-' || g, 1)) FROM generate_series(1, 100) g;
SELECT coalesce(count(*), 0) = CASE WHEN kept() THEN 64 ELSE 0 END AS of_transaction,
	coalesce(sum(left_out), 0) = CASE WHEN kept() THEN 36 ELSE 0 END AS left_out,
	coalesce(bool_and(left_out = 0 OR resource = 'takeovers/many-64'), true) AS at_last
FROM lockfence.takeovers WHERE database = current_database() AND resource LIKE 'takeovers/many-%';
BEGIN;
SELECT count(present('takeovers/more-' || g, 1)) FROM generate_series(1, 70) g;
SAVEPOINT a;
SELECT count(present('takeovers/more-' || g, 2)) FROM generate_series(1, 70) g;
SAVEPOINT b;
SELECT count(present('takeovers/more-' || g, 3)) FROM generate_series(1, 5) g;
RELEASE b;
ROLLBACK TO a;
SELECT count(present('takeovers/more-' || g, 4)) FROM generate_series(1, 3) g;
SAVEPOINT c;
SELECT count(present('takeovers/more-' || g, 5)) FROM generate_series(1, 2) g;
RELEASE c;
RELEASE a;
COMMIT;
SELECT coalesce(sum(left_out), 0) = CASE WHEN kept() THEN 6 + 3 + 2 ELSE 0 END AS left_out
FROM lockfence.takeovers WHERE database = current_database() AND resource LIKE 'takeovers/more-%';
-- what a rollback makes space for is kept
BEGIN;
SAVEPOINT a;
SELECT count(present('takeovers/space-' || g, 1)) FROM generate_series(1, 70) g;
ROLLBACK TO a;
SELECT present('takeovers/space-1', 7);
COMMIT;
SELECT coalesce(string_agg(resource || ' ' || token || ' ' || left_out, ','), '') = CASE WHEN kept() THEN 'takeovers/space-1 7 0' ELSE '' END AS space
FROM lockfence.takeovers WHERE database = current_database() AND resource LIKE 'takeovers/space-%';
-- where a rollback takes back all of many changes, their list is no more: the next transaction has names in its place
BEGIN;
SAVEPOINT a;
SELECT count(present('takeovers/back-' || g, 1)) FROM generate_series(1, 9) g;
ROLLBACK TO a;
COMMIT;
BEGIN;
SELECT count(present('takeovers/next-' || g || repeat('-', 400), g)) FROM generate_series(1, 30) g;
SELECT count(*) FROM presented() WHERE resource = 'takeovers/next-' || token || repeat('-', 400);
COMMIT;
SELECT count(*) = CASE WHEN kept() THEN 30 ELSE 0 END AS are_kept
FROM lockfence.takeovers WHERE database = current_database() AND resource ~ ('^takeovers/next-' || token || '-');
SELECT changed() IS NOT NULL;

-- the role is that of the session, also where a function runs as its owner
CREATE ROLE regress_lf_taker;
CREATE ROLE regress_lf_monitor IN ROLE pg_monitor;
GRANT USAGE ON SCHEMA test_takeovers TO regress_lf_taker, regress_lf_monitor;
GRANT EXECUTE ON FUNCTION lockfence.raise_mark(text, lockfence.fence_token, text),
	lockfence.present(text, lockfence.fence_token) TO regress_lf_taker;
SET ROLE regress_lf_taker;
-- a role that may write to a table, and not read it, would be sent the names that are made of its rows
SET lockfence.notify_takeovers = on;
SET lockfence.notify_leases = on;
SELECT present('takeovers/1', 50);
SELECT raise_mark('takeovers/1', 51, 'test');
-- which sees none
SELECT count(*) FROM lockfence.takeovers;
SELECT count(*) FROM lockfence._takeovers();
SET ROLE regress_lf_monitor;
SELECT coalesce(string_agg(role || ' ' || token, ', ' ORDER BY number), '') =
	CASE WHEN kept() THEN 'regress_lf_taker 50, regress_lf_taker 51' ELSE '' END AS role
FROM lockfence.takeovers WHERE database = current_database() AND resource = 'takeovers/1' AND token BETWEEN 50 AND 51;
RESET ROLE;
SELECT changed() IS NOT NULL;

-- names of all kinds; a long one is cut between characters, which makes no two of them one
CREATE TABLE "a ""b" ("c)=(1" text PRIMARY KEY);
SELECT attach('"a ""b"');
INSERT INTO "a ""b" VALUES (E'x\n)''', 1);
UPDATE "a ""b" SET fence = 2;
SELECT changed(E'"a ""b" test_takeovers."a ""b" ("c)=(1")=(x\n)'') 1 2 column');
SELECT present(repeat('ö', 300), 9), present(repeat('ö', 301), 8);
SELECT changed(repeat('ö', 127) || ' - 9 present', repeat('ö', 127) || ' - 8 present');

-- off: nothing is kept
SET lockfence.track = off;
SELECT present('takeovers/1', 60);
SET lockfence.track = on;
SELECT changed();

-- a table that is dropped has no name any more
DROP TABLE account;
SELECT count(*) = CASE WHEN kept() THEN 6 ELSE 0 END AS nameless
FROM lockfence.takeovers WHERE database = current_database() AND target::text ~ '^[0-9]+$' AND resource LIKE 'test_takeovers.account_1 %';

DROP OWNED BY regress_lf_taker, regress_lf_monitor;
DROP ROLE regress_lf_taker, regress_lf_monitor;
DROP SCHEMA test_takeovers CASCADE;
