-- missing => 'allow': a write without a token passes unprotected; one with a token is judged.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_missing;
SET search_path = test_missing;
CREATE TABLE item (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'missing:{id}', 'token', missing => 'allow');
INSERT INTO item VALUES (1, 'new', 10), (2, 'new', NULL);
UPDATE item SET note = 'unprotected' WHERE id = 1;
UPDATE item SET note = 'stale', token = 9 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE item SET note = 'null', token = NULL WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present(9);
UPDATE item SET note = 'stale' WHERE id = 1;
ROLLBACK;
BEGIN;
SELECT lockfence.present(9);
DELETE FROM item WHERE id = 1;
ROLLBACK;
-- An unprotected write touches no mark, and the row keeps the token that it had.
SELECT * FROM item ORDER BY id;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'missing:%';
-- ... even where an earlier trigger puts another one there, which would stand for a missing mark
CREATE FUNCTION forge() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.token := 99;
	RETURN NEW;
END
$$;
CREATE TRIGGER forge BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION forge();
UPDATE item SET note = 'forged' WHERE id = 1;
SELECT * FROM item WHERE id = 1;
DROP TRIGGER forge ON item;
DELETE FROM item WHERE id = 1;
INSERT INTO item VALUES (1, 'stale', 9);
TRUNCATE item;
\echo :LAST_ERROR_SQLSTATE

-- A row fence: an unprotected UPDATE does not lower the row's mark, whatever an earlier trigger does to it.
CREATE TABLE job (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('job', missing => 'allow');
INSERT INTO job VALUES (1, 'new', 10);
UPDATE job SET note = 'unprotected';
CREATE FUNCTION wipe() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.fence := NULL;
	RETURN NEW;
END
$$;
CREATE TRIGGER wipe BEFORE UPDATE ON job FOR EACH ROW EXECUTE FUNCTION wipe();
UPDATE job SET note = 'wiped';
SELECT * FROM job;
DROP TRIGGER wipe ON job;
UPDATE job SET note = 'stale', fence = 9;
DELETE FROM job;
SELECT count(*) FROM job;

-- accept => 'presented': what the column brings is no token, so the write is unprotected.
CREATE TABLE orm (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('orm', 'missing:orm', 'token', accept => 'presented', missing => 'allow');
INSERT INTO orm VALUES (1, 'new', 99);
SELECT * FROM orm;
BEGIN;
SELECT lockfence.present(10);
UPDATE orm SET note = 'presented', token = 99;
COMMIT;
UPDATE orm SET note = 'unprotected', token = 5;
SELECT * FROM orm;
SELECT token FROM lockfence.mark WHERE resource = 'missing:orm';

-- A constant fence
CREATE TABLE ledger (id integer);
SELECT lockfence.attach('ledger', 'missing:ledger', missing => 'allow');
INSERT INTO ledger VALUES (1);
BEGIN;
SELECT lockfence.present('missing:ledger', 10);
INSERT INTO ledger VALUES (2);
COMMIT;
BEGIN;
SELECT lockfence.present(9);
INSERT INTO ledger VALUES (3);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
TRUNCATE ledger;
SELECT count(*) FROM ledger;

-- A resource must be nameable even so.
CREATE TABLE nullable (id integer, grp text);
SELECT lockfence.attach('nullable', 'missing:{grp}', missing => 'allow');
INSERT INTO nullable VALUES (1, NULL);
\echo :LAST_ERROR_SQLSTATE
-- A row without a resource gets one, by a write that presents no token: the token in its column is not that resource's.
CREATE TABLE homeless (id integer PRIMARY KEY, grp text);
SELECT lockfence.attach('homeless', 'missing:{grp}', 'token', missing => 'allow');
BEGIN;
SET LOCAL lockfence.bypass = on;
INSERT INTO homeless VALUES (1, NULL, 60);
COMMIT;
UPDATE homeless SET grp = 'a';
SELECT * FROM homeless;
DROP SCHEMA test_missing CASCADE;
