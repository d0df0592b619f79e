-- The mark of one row: raised, reset and asked for by the row's key, on tables that others own.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_row_marks;
SET search_path = test_row_marks;
SELECT coalesce(max(id), 0) AS last_entry FROM lockfence.admin_log \gset
CREATE TABLE job (id integer PRIMARY KEY, code text UNIQUE, site text NOT NULL, number integer NOT NULL, note text, UNIQUE (site, number));
CREATE UNIQUE INDEX ON job (note) WHERE note <> '';
SELECT lockfence.attach('job');
INSERT INTO job VALUES (1, 'one', 'a', 1, 'x'), (2, 'two', 'a', 2, 'y'), (3, NULL, 'b', 1, '');
UPDATE job SET note = 'by 8', fence = 8 WHERE id = 1;

-- raise_mark(): the holder is out, and the refusal says how the mark is set.
SELECT lockfence.raise_mark('job', '{"id": 1}', 9, 'the holder hangs');
UPDATE job SET note = 'late', fence = 8 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.is_current('job', '{"id": 1}', 8) AS old, lockfence.is_current('job', '{"id": 1}', 9) AS new;
UPDATE job SET note = 'by 9', fence = 9 WHERE id = 1;
SELECT lockfence.raise_mark('job', '{"id": 1}', 9, 'equal');
SELECT lockfence.raise_mark('job', '{"id": 1}', 8, 'lower');
\echo :LAST_ERROR_SQLSTATE
-- reset_mark(): up and down
SELECT lockfence.raise_mark('job', '{"id": 1}', 9223372036854775807, 'poison');
SELECT lockfence.reset_mark('job', '{"id": 1}', 8, 'poisoned');
SELECT lockfence.reset_mark('job', '{"id": 1}', 10, 'up as well');
UPDATE job SET note = 'late', fence = 9 WHERE id = 1;
-- a row without a mark
SELECT lockfence.raise_mark('job', '{"id": 2}', 5, 'first');
SELECT lockfence.reset_mark('job', '{"id": 3}', 6, 'first');
-- Only the token has changed, and only there.
SELECT * FROM job ORDER BY id;
-- The log has the row as refusals name it; what failed, or was rolled back, is not there.
SELECT action, resource, before, after, reason, role = session_user AS role
FROM lockfence.admin_log WHERE id > :last_entry ORDER BY id;

-- A key tells one row: by a unique key without nulls, whatever else it says.
SELECT lockfence.raise_mark('job', '{"site": "b", "number": 1}', 7, 'by the other key');
SELECT lockfence.raise_mark('job', '{"id": 3, "note": ""}', 8, 'and more');
SELECT lockfence.raise_mark('job', '{"id": 3, "note": "z"}', 9, 'no such row');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.raise_mark('job', '{"id": 99}', 9, 'no such row');
SELECT lockfence.raise_mark('job', '{"id": null}', 9, 'no such row');
SELECT lockfence.is_current('job', '{"id": 99}', 9);
SELECT lockfence.raise_mark('job', '{"code": "one"}', 9, 'may be null');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.raise_mark('job', '{"site": "a"}', 9, 'half of a key');
SELECT lockfence.raise_mark('job', '{"note": "y"}', 9, 'partial');
SELECT lockfence.reset_mark('job', '{"code": "two"}', 9, 'may be null');
SELECT lockfence.is_current('job', '{"code": "two"}', 9);
SELECT lockfence.raise_mark('job', '{"nothing": 1}', 9, 'no such column');
SELECT lockfence.raise_mark('job', '{"id": "one"}', 9, 'no integer');
SELECT lockfence.raise_mark('job', '{}', 9, 'empty');
SELECT lockfence.raise_mark('job', '[1]', 9, 'no object');
SELECT lockfence.raise_mark(NULL::regclass, '{"id": 1}', 9, 'null');
SELECT lockfence.raise_mark('job', NULL, 9, 'null');
SELECT lockfence.raise_mark('job', '{"id": 1}', NULL, 'null');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.is_current('job', '{"id": 1}', 0);
SELECT lockfence.raise_mark('job', '{"id": 1}', 20, NULL);
SELECT lockfence.reset_mark('job', '{"id": 1}', 1, ' ');
SELECT id, fence FROM job ORDER BY id;

-- Only row fences have marks in rows.
CREATE TABLE named (id integer PRIMARY KEY);
CREATE TABLE plain (id integer PRIMARY KEY, fence lockfence.fence_token);
CREATE VIEW job_view AS SELECT * FROM job;
CREATE TRIGGER "~lockfence_row" INSTEAD OF UPDATE ON job_view FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row('token_column=fence');
SELECT lockfence.attach('named', 'row-mark:{id}', token_column => 'fence');
INSERT INTO named VALUES (1, 5);
SELECT lockfence.raise_mark('named', '{"id": 1}', 9, 'x');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.reset_mark('plain', '{"id": 1}', 9, 'x');
SELECT lockfence.is_current('job_view', '{"id": 1}', 9);
SELECT lockfence.raise_mark('job_pkey', '{"id": 1}', 9, 'x');

-- Single use: what equals the mark is used up.
CREATE TABLE once (id integer PRIMARY KEY);
SELECT lockfence.attach('once', repeat => 'reject');
INSERT INTO once VALUES (1);
SELECT lockfence.raise_mark('once', '{"id": 1}', 5, 'x');
SELECT lockfence.is_current('once', '{"id": 1}', 5) AS equal, lockfence.is_current('once', '{"id": 1}', 6) AS higher;
UPDATE once SET fence = 5 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
-- The epoch counts for is_current(), and not for the administrator.
BEGIN;
SELECT lockfence.set_epoch(3, 'test');
SELECT lockfence.raise_mark('job', '{"id": 1}', 11, 'x');
SELECT lockfence.is_current('job', '{"id": 1}', 12), lockfence.is_current('job', '{"id": 1}', lockfence.make_token(3, 1));
ROLLBACK;

-- Partitions: the row is found and written where it is. Children can have the key twice.
CREATE TABLE part (k integer, id integer, note text, PRIMARY KEY (k, id)) PARTITION BY LIST (k);
CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1);
CREATE TABLE part2 (note text, gone integer, k integer NOT NULL, id integer NOT NULL);
ALTER TABLE part2 DROP COLUMN gone;
ALTER TABLE part ATTACH PARTITION part2 FOR VALUES IN (2);
SELECT lockfence.attach('part');
INSERT INTO part VALUES (1, 1, 'x'), (2, 1, 'y');
SELECT lockfence.raise_mark('part', '{"k": 2, "id": 1}', 7, 'x');
SELECT lockfence.is_current('part', '{"k": 2, "id": 1}', 6) AS old, lockfence.is_current('part2', '{"k": 2, "id": 1}', 7) AS new;
SELECT tableoid::regclass, * FROM part ORDER BY k;
CREATE TABLE parent (id integer PRIMARY KEY);
CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
SELECT lockfence.attach('parent');
INSERT INTO parent VALUES (1);
INSERT INTO child VALUES (1), (2);
SELECT lockfence.raise_mark('parent', '{"id": 1}', 7, 'x');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.raise_mark('parent', '{"id": 2}', 7, 'x');
SELECT tableoid::regclass, * FROM parent ORDER BY id, tableoid::regclass::text;

-- The guard admits that row with that token, and nothing else that a trigger does meanwhile.
CREATE TABLE chatty (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('chatty');
INSERT INTO chatty VALUES (1), (2), (3);
UPDATE chatty SET fence = 10;
CREATE FUNCTION also() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF new.id = 1 THEN
		UPDATE chatty SET note = 'also', fence = new.fence WHERE id = 2;
	ELSIF new.id = 2 THEN
		new.fence := new.fence - 1;
	ELSE
		RETURN NULL;
	END IF;
	RETURN new;
END
$$;
CREATE TRIGGER also BEFORE UPDATE ON chatty FOR EACH ROW EXECUTE FUNCTION also();
SELECT lockfence.reset_mark('chatty', '{"id": 1}', 5, 'another row');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.reset_mark('chatty', '{"id": 2}', 5, 'another token');
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.reset_mark('chatty', '{"id": 3}', 5, 'no write');
\echo :LAST_ERROR_SQLSTATE
-- and once it failed, not that one either
DROP TRIGGER also ON chatty;
CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'failed'; END$$;
CREATE TRIGGER "~z" BEFORE UPDATE ON chatty FOR EACH ROW EXECUTE FUNCTION fails();
BEGIN;
SAVEPOINT s;
SELECT lockfence.reset_mark('chatty', '{"id": 3}', 5, 'fails');
ROLLBACK TO s;
DROP TRIGGER "~z" ON chatty;
UPDATE chatty SET fence = 5 WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
DROP TRIGGER "~z" ON chatty;
SELECT * FROM chatty ORDER BY id;
-- A deferred trigger would run as the caller, so it is none that can be fired.
CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON chatty DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION later();
SELECT lockfence.reset_mark('chatty', '{"id": 3}', 5, 'deferred');
\echo :LAST_ERROR_SQLSTATE
DROP TABLE chatty;

-- Whatever the owner made runs as the owner.
CREATE ROLE regress_owner;
CREATE ROLE regress_other_owner;
CREATE ROLE regress_operator;
CREATE ROLE regress_reader;
CREATE SCHEMA test_row_marks_owner AUTHORIZATION regress_owner;
GRANT USAGE, CREATE ON SCHEMA test_row_marks_owner TO regress_other_owner;
GRANT EXECUTE ON FUNCTION lockfence.guard_row(), lockfence.guard_truncate() TO regress_owner;
GRANT EXECUTE ON FUNCTION lockfence.raise_mark(regclass, jsonb, lockfence.fence_token, text) TO regress_operator;
GRANT USAGE ON SCHEMA test_row_marks_owner TO regress_operator, regress_reader;
SET ROLE regress_owner;
SET search_path = test_row_marks_owner;
CREATE TABLE ran (what text, as_role name);
CREATE FUNCTION note(what text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ran VALUES (what, current_user);
	RETURN true;
END
$$;
CREATE DOMAIN key AS integer CHECK (test_row_marks_owner.note('domain') OR VALUE IS NULL);
CREATE FUNCTION noted(number integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM test_row_marks_owner.note('expression');
	RETURN number;
END
$$;
CREATE TABLE item (id key PRIMARY KEY, number integer, CHECK (test_row_marks_owner.note('check')));
CREATE INDEX ON item (noted(number));
CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM note(tg_when || ' trigger');
	RETURN new;
END
$$;
CREATE TRIGGER fired BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION fired();
CREATE TRIGGER fired_after AFTER UPDATE ON item FOR EACH ROW EXECUTE FUNCTION fired();
SELECT lockfence.attach('item');
CREATE INDEX ON item (fence);
INSERT INTO item VALUES (1, 1);
TRUNCATE ran;
RESET ROLE;
SET search_path = test_row_marks;
SELECT lockfence.raise_mark('test_row_marks_owner.item', '{"id": 1}', 5, 'by a superuser');
SET ROLE regress_operator;
SELECT lockfence.raise_mark('test_row_marks_owner.item', '{"id": 1}', 6, 'by an operator, without a right on the table');
SELECT lockfence.is_current('test_row_marks_owner.item', '{"id": 1}', 6);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.is_current('test_row_marks_owner.item', NULL, 6);
\echo :LAST_ERROR_SQLSTATE
-- nor does the key get to what the owner made
SELECT lockfence.is_current('test_row_marks_owner.item', '{"id": "x"}', 6);
-- ... of a role that may read another column
RESET ROLE;
GRANT SELECT (number) ON test_row_marks_owner.item TO regress_operator;
SET ROLE regress_operator;
SELECT lockfence.is_current('test_row_marks_owner.item', '{"id": "x"}', 6);
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
REVOKE SELECT (number) ON test_row_marks_owner.item FROM regress_operator;
SET ROLE regress_operator;
SELECT lockfence.reset_mark('test_row_marks_owner.item', '{"id": 1}', 6, 'may not');
RESET ROLE;
SELECT lockfence.reset_mark('test_row_marks_owner.item', '{"id": 1}', 7, 'by a superuser');
SELECT lockfence.is_current('test_row_marks_owner.item', '{"id": 1}', 6) AS superuser;
SELECT DISTINCT what, as_role FROM test_row_marks_owner.ran ORDER BY 1, 2;
SELECT current_user = session_user AS same, current_setting('search_path') AS path, current_setting('row_security') AS rls;
-- a partition that belongs to another role
SET ROLE regress_owner;
SET search_path = test_row_marks_owner;
CREATE TABLE sorted (id integer PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE sorted1 PARTITION OF sorted FOR VALUES FROM (1) TO (10);
SELECT lockfence.attach('sorted');
INSERT INTO sorted VALUES (1);
RESET ROLE;
ALTER TABLE sorted1 OWNER TO regress_other_owner;
SET ROLE regress_other_owner;
CREATE FUNCTION fired2() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING 'the partition''s trigger runs as %', current_user;
	RETURN new;
END
$$;
CREATE TRIGGER fired BEFORE UPDATE ON sorted1 FOR EACH ROW EXECUTE FUNCTION fired2();
RESET ROLE;
SET search_path = test_row_marks;
SELECT lockfence.raise_mark('test_row_marks_owner.sorted', '{"id": 1}', 5, 'x');

-- is_current() says what a SELECT would.
GRANT SELECT (id) ON test_row_marks_owner.item TO regress_reader;
SET ROLE regress_reader;
SELECT lockfence.is_current('test_row_marks_owner.item', '{"id": 1}', 7);
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
GRANT SELECT (fence) ON test_row_marks_owner.item TO regress_reader;
SET ROLE regress_reader;
SELECT lockfence.is_current('test_row_marks_owner.item', '{"id": 1}', 6), lockfence.is_current('test_row_marks_owner.item', '{"id": 1}', 7);
RESET ROLE;
-- Row security that could hide the row is an error.
ALTER TABLE test_row_marks_owner.item ENABLE ROW LEVEL SECURITY;
SET ROLE regress_reader;
SELECT lockfence.is_current('test_row_marks_owner.item', '{"id": 1}', 7);
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
SELECT lockfence.raise_mark('test_row_marks_owner.item', '{"id": 1}', 8, 'the owner is not under it');
ALTER TABLE test_row_marks_owner.item FORCE ROW LEVEL SECURITY;
SELECT lockfence.raise_mark('test_row_marks_owner.item', '{"id": 1}', 9, 'now it is');
\echo :LAST_ERROR_SQLSTATE
SELECT id, fence FROM test_row_marks_owner.item;

-- A standby's, and a read-only transaction's, answer is the same; the mark stays.
BEGIN READ ONLY;
SELECT lockfence.is_current('job', '{"id": 1}', 9);
SELECT lockfence.raise_mark('job', '{"id": 1}', 99, 'x');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SELECT has_function_privilege('regress_reader', 'lockfence._set_row_mark(regclass, jsonb, lockfence.fence_token, boolean)', 'EXECUTE') AS may_set;

DROP SCHEMA test_row_marks_owner, test_row_marks CASCADE;
REVOKE ALL ON FUNCTION lockfence.guard_row(), lockfence.guard_truncate() FROM regress_owner;
REVOKE ALL ON FUNCTION lockfence.raise_mark(regclass, jsonb, lockfence.fence_token, text) FROM regress_operator;
DROP ROLE regress_owner, regress_other_owner, regress_operator, regress_reader;
