-- accept => 'named': only a token that was presented for that very resource counts, or that the statement's column shows.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_named;
SET search_path = test_named;
SET lockfence.unchecked_token = error;
\pset tuples_only on
-- A child's trigger writes to its parent, whose lock is another one.
CREATE TABLE parent (id integer PRIMARY KEY, children integer DEFAULT 0);
CREATE TABLE child (id integer PRIMARY KEY, parent integer);
CREATE FUNCTION count_child() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE test_named.parent SET children = children + 1 WHERE id = NEW.parent;
	RETURN NEW;
END
$$;
CREATE TRIGGER count_child AFTER INSERT ON child FOR EACH ROW EXECUTE FUNCTION count_child();
SELECT lockfence.attach('child', 'child:{id}', 'token');
SELECT lockfence.attach('parent', 'parent:{id}', 'token');
INSERT INTO parent VALUES (1, 0, 5);
-- by default the ambient token raises the mark of the parent's lock, ...
BEGIN;
SELECT lockfence.present(900);
INSERT INTO child VALUES (1, 1);
SELECT token FROM lockfence.mark WHERE resource = 'parent:1';
ROLLBACK;
-- ... and a fence that takes named tokens refuses it
BEGIN;
SELECT lockfence.detach('parent');
SELECT lockfence.attach('parent', 'parent:{id}', 'token', accept => 'named');
COMMIT;
SELECT accept FROM lockfence.fences WHERE target = 'parent'::regclass;
BEGIN;
SELECT lockfence.present(900);
INSERT INTO child VALUES (1, 1);
ROLLBACK;
SELECT lockfence.guarded_update('child', '{"id": 1}', '{"parent": 1}', 900);
-- a token presented for it counts beside another ambient one, and is no conflict
BEGIN;
SELECT lockfence.present(900);
SELECT lockfence.present('parent:1', 6);
INSERT INTO child VALUES (1, 1);
COMMIT;
SELECT resource, token FROM lockfence.mark WHERE resource IN ('parent:1', 'child:1') ORDER BY 1;
-- so do the column, and the token given to a guarded function for the rows that match
UPDATE parent SET children = 0, token = 7;
SELECT lockfence.guarded_update('parent', '{"id": 1}', '{"children": 0}', 8);
SELECT lockfence.guarded_update('parent', '{"children": 0}', '{"children": 1}', 9);
-- no token at all; an ambient one alone, with the hint that says why
UPDATE parent SET children = 2;
BEGIN;
SELECT lockfence.present(9);
UPDATE parent SET children = 2;
ROLLBACK;
-- ... and it was compared with nothing
BEGIN;
SET LOCAL lockfence.bypass = on;
SELECT lockfence.present(9);
UPDATE parent SET children = 2;
COMMIT;
-- a foreign key's action
CREATE TABLE owner (id integer PRIMARY KEY);
CREATE TABLE owned (id integer PRIMARY KEY REFERENCES owner ON DELETE CASCADE ON UPDATE CASCADE);
SELECT lockfence.attach('owner', 'owner:{id}');
SELECT lockfence.attach('owned', 'owned:{id}', accept => 'named');
BEGIN;
SELECT lockfence.present('owned:1', 3);
SELECT lockfence.present('owner:1', 4);
INSERT INTO owner VALUES (1);
INSERT INTO owned VALUES (1);
COMMIT;
BEGIN;
SELECT lockfence.present(900);
DELETE FROM owner;
ROLLBACK;
SELECT token FROM lockfence.mark WHERE resource = 'owned:1';
-- a constant fence, with a statement trigger
CREATE TABLE whole (id integer);
SELECT lockfence.attach('whole', 'named:whole', accept => 'named');
BEGIN;
SELECT lockfence.present(4);
INSERT INTO whole VALUES (1);
ROLLBACK;
BEGIN;
SELECT lockfence.present('named:whole', 4);
INSERT INTO whole VALUES (1);
TRUNCATE whole;
COMMIT;
-- a row fence: present(target, key, token) names the row
CREATE TABLE job (id integer PRIMARY KEY, state text);
SELECT lockfence.attach('job', accept => 'named');
INSERT INTO job VALUES (1, 'new');
BEGIN;
SELECT lockfence.present(4);
UPDATE job SET state = 'ambient';
ROLLBACK;
BEGIN;
SELECT lockfence.present('job', '{"id": 1}', 4);
UPDATE job SET state = 'named';
COMMIT;
SELECT * FROM job;
-- an advisory one reports it as missing
CREATE TABLE observed (id integer PRIMARY KEY);
SELECT lockfence.attach('observed', 'observed:{id}', accept => 'named', enforcement => 'advisory');
BEGIN;
SET LOCAL lockfence.unchecked_token = ignore;
SELECT lockfence.present(4);
INSERT INTO observed VALUES (1);
COMMIT;
SELECT count(*) FROM lockfence.mark WHERE resource = 'observed:1';
-- stale holders fail by every path
SELECT count(*) FILTER (WHERE verdict = 'refused') > 5, count(*) FILTER (WHERE verdict NOT IN ('refused', 'skipped'))
FROM lockfence.drill('parent', '{"id": 1}', '{"children": 3}');
SELECT count(*) FILTER (WHERE verdict = 'refused') > 5, count(*) FILTER (WHERE verdict NOT IN ('refused', 'skipped'))
FROM lockfence.drill('job', '{"id": 1}', '{"state": "x"}');
SELECT target, code FROM lockfence.verify() WHERE severity = 'error' AND target IN ('parent'::regclass, 'job', 'whole');
SELECT lockfence.attach('child', 'child:{id}', accept => 'name');
DROP SCHEMA test_named CASCADE;
