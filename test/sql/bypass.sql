-- Ways around a trigger, each closed.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_bypass;
SET search_path = test_bypass;
CREATE TABLE item (id integer PRIMARY KEY, grp text NOT NULL, note text);
SELECT lockfence.attach('item', 'bypass:{grp}', 'token');
INSERT INTO item VALUES (1, 'a', 'new', 10), (2, 'b', 'new', 10);
CREATE TABLE jobs (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('jobs');
INSERT INTO jobs VALUES (1, 'new', 10);
CREATE TABLE part (id integer NOT NULL, grp text NOT NULL) PARTITION BY LIST (grp);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF part FOR VALUES IN ('b') PARTITION BY LIST (id);
CREATE TABLE part_b_1 PARTITION OF part_b FOR VALUES IN (1);
SELECT lockfence.attach('part', 'bypass:{grp}', 'token');
INSERT INTO part VALUES (1, 'a', 10), (1, 'b', 10);

-- TRUNCATE skips row triggers, and a parent's trigger does not fire for TRUNCATE of a leaf
TRUNCATE item;
\echo :LAST_ERROR_SQLSTATE
TRUNCATE jobs;
TRUNCATE part;
TRUNCATE part_a;
TRUNCATE part_b;
TRUNCATE part_b_1;
TRUNCATE ONLY part_a;
-- ... a presented token does not help where each row has its resource
BEGIN;
SELECT lockfence.present(10);
TRUNCATE item;
ROLLBACK;
-- ... nor among other tables, or by CASCADE
CREATE TABLE other (id integer PRIMARY KEY);
TRUNCATE other, item;
CREATE TABLE refers (id integer REFERENCES other, note text);
SELECT lockfence.attach('refers', 'bypass:refers', 'token');
TRUNCATE other CASCADE;
SELECT (SELECT count(*) FROM item) AS item, (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM part) AS part;
-- ... on a constant fence it is a write like another
BEGIN;
SELECT lockfence.present('bypass:refers', 5);
TRUNCATE other CASCADE;
ROLLBACK;

-- session_replication_role = replica skips ordinary triggers
SET session_replication_role = replica;
UPDATE item SET note = 'replica' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE jobs SET note = 'replica', fence = 9;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO part VALUES (1, 'a');
INSERT INTO part_b_1 VALUES (1, 'b', 9);
DELETE FROM part_a;
TRUNCATE item;
\echo :LAST_ERROR_SQLSTATE
TRUNCATE part_b_1;
RESET session_replication_role;

-- ENABLE TRIGGER ALL turns ALWAYS back into ORIGIN: the view shows it
ALTER TABLE item ENABLE TRIGGER ALL;
SELECT triggers FROM lockfence.fences WHERE target = 'item'::regclass;
UPDATE item SET note = 'origin' WHERE id = 1;
-- ... and guarded writes do not trust such a guard
SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "guarded"}', 10);
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE item ENABLE ALWAYS TRIGGER "~lockfence_row", ENABLE ALWAYS TRIGGER "~lockfence_truncate";
SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "guarded"}', 10);
ALTER TABLE item DISABLE TRIGGER "~lockfence_row";
SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "guarded"}', 10);
ALTER TABLE item ENABLE ALWAYS TRIGGER "~lockfence_row";

-- a write straight into a leaf skips the parent's statement trigger
CREATE TABLE whole (id integer, grp text) PARTITION BY LIST (grp);
CREATE TABLE whole_a PARTITION OF whole FOR VALUES IN ('a');
SELECT lockfence.attach('whole', 'bypass:whole');
INSERT INTO whole_a VALUES (1, 'a');
\echo :LAST_ERROR_SQLSTATE
TRUNCATE whole_a;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present('bypass:whole', 5);
INSERT INTO whole_a VALUES (1, 'a');
INSERT INTO whole VALUES (2, 'a');
TRUNCATE whole_a;
COMMIT;

-- an earlier BEFORE trigger that changes the token, the resource or the row: the guard sees what is written
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	CASE NEW.note
		WHEN 'token' THEN NEW.token := 1;
		WHEN 'null' THEN NEW.token := NULL;
		WHEN 'move' THEN NEW.grp := 'b';
		WHEN 'nothing' THEN RETURN NULL;
		ELSE NULL;
	END CASE;
	RETURN NEW;
END
$$;
CREATE TRIGGER meddle BEFORE INSERT OR UPDATE ON item FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT lockfence.present('bypass:b', 20);
INSERT INTO item VALUES (3, 'a', 'token', 10);
INSERT INTO item VALUES (3, 'a', 'null', 10);
INSERT INTO item VALUES (3, 'a', 'move', 10);
UPDATE item SET note = 'token', token = 10 WHERE id = 1;
UPDATE item SET note = 'move', token = 10 WHERE id = 1;
UPDATE item SET note = 'nothing' WHERE id = 1;
BEGIN;
SELECT lockfence.present('bypass:a', 10);
UPDATE item SET note = 'token' WHERE id = 1;
SELECT * FROM item WHERE id = 1;
UPDATE item SET note = 'move' WHERE id = 1;
ROLLBACK;
DROP TRIGGER meddle ON item;

-- a new row of the accepted token's, whatever the row said: the stored token is the one that was judged
BEGIN;
SELECT lockfence.present(20);
INSERT INTO item VALUES (4, 'b', 'new');
SELECT * FROM item WHERE id = 4;
ROLLBACK;

-- renamed and dropped columns leave trigger arguments behind: the fence fails closed, and says how to mend it
CREATE TABLE renamed (id integer PRIMARY KEY, grp text NOT NULL, note text);
SELECT lockfence.attach('renamed', 'bypass:renamed-{grp}', 'token');
INSERT INTO renamed VALUES (1, 'a', 'new', 10);
ALTER TABLE renamed RENAME grp TO cluster;
UPDATE renamed SET note = 'renamed', token = 10;
\echo :LAST_ERROR_SQLSTATE
DELETE FROM renamed;
INSERT INTO renamed VALUES (2, 'a', 'new', 10);
SELECT lockfence.guarded_update('renamed', '{"id": 1}', '{"note": "guarded"}', 10);
-- ... another column that takes the name is taken for it
ALTER TABLE renamed ADD grp text;
UPDATE renamed SET note = 'null', token = 10;
ALTER TABLE renamed DROP grp;
ALTER TABLE renamed RENAME cluster TO grp;
UPDATE renamed SET note = 'back', token = 10;
ALTER TABLE renamed RENAME token TO proof;
UPDATE renamed SET note = 'renamed', proof = 10;
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE renamed DROP proof;
UPDATE renamed SET note = 'dropped';
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE renamed ADD token text;
UPDATE renamed SET note = 'text';
\echo :LAST_ERROR_SQLSTATE
-- ... and is declared again
SELECT lockfence.detach('renamed');
SELECT lockfence.attach('renamed', 'bypass:renamed-{grp}', 'proof');
UPDATE renamed SET note = 'stale', proof = 9;
UPDATE renamed SET note = 'again', proof = 10;
-- A dropped validator is missed as well.
CREATE FUNCTION valid(text, lockfence.fence_token) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT lockfence.detach('renamed');
SELECT lockfence.attach('renamed', 'bypass:renamed-{grp}', 'proof', validator => 'valid(text, lockfence.fence_token)');
UPDATE renamed SET note = 'valid', proof = 11;
DROP FUNCTION valid;
UPDATE renamed SET note = 'no validator', proof = 12;
\echo :LAST_ERROR_SQLSTATE
-- ... in a session that has parsed the fence before, too, once anything makes it look again.
\c -
SET search_path = test_bypass;
SET client_min_messages = warning;
UPDATE renamed SET note = 'no validator', proof = 12;
\echo :LAST_ERROR_SQLSTATE
SELECT target, kind, resource, accept FROM lockfence.fences WHERE target = 'renamed'::regclass;

-- a rename of the table or its schema changes nothing
ALTER TABLE item RENAME TO thing;
UPDATE thing SET note = 'inherited' WHERE id = 1;
UPDATE thing SET note = 'renamed', token = 10 WHERE id = 1;
ALTER TABLE thing RENAME TO item;
-- ... a type of a placeholder changed is printed as the new type
ALTER TABLE jobs ADD code integer DEFAULT 7;
SELECT lockfence.detach('jobs');
SELECT lockfence.attach('jobs', 'bypass:code-{code}', 'fence');
UPDATE jobs SET note = 'typed', fence = 10;
ALTER TABLE jobs ALTER code TYPE numeric(8, 2);
UPDATE jobs SET note = 'typed', fence = 9;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'bypass:code%' ORDER BY 1;

-- A missing mark table lets nothing pass.
BEGIN;
ALTER TABLE lockfence.mark RENAME TO marks;
UPDATE item SET note = 'no marks', token = 10 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
UPDATE item SET note = 'marks', token = 10 WHERE id = 1;

-- lockfence.bypass is an administrator's, and for maintenance
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE item SET note = 'bypassed' WHERE id = 1;
UPDATE jobs SET note = 'bypassed', fence = 3;
INSERT INTO whole VALUES (1, 'a');
SELECT * FROM lockfence.presented();
SELECT * FROM item WHERE id = 1;
SELECT * FROM jobs;
SET LOCAL lockfence.bypass = off;
UPDATE item SET note = 'inherited' WHERE id = 1;
ROLLBACK;
BEGIN;
SET LOCAL lockfence.bypass = on;
TRUNCATE item, jobs;
ROLLBACK;
-- ... it is logged once a transaction and table
SET client_min_messages = log;
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE item SET note = 'bypassed';
UPDATE item SET note = 'bypassed';
INSERT INTO jobs VALUES (2, 'bypassed');
ROLLBACK;
SET client_min_messages = warning;
CREATE ROLE regress_bypass;
GRANT USAGE ON SCHEMA test_bypass TO regress_bypass;
GRANT ALL ON item TO regress_bypass;
SET ROLE regress_bypass;
SET lockfence.bypass = on;
\echo :LAST_ERROR_SQLSTATE
SET lockfence.preempt = on;
SET lockfence.max_resource_locks = 10;
SELECT set_config('lockfence.bypass', 'on', true);
RESET ROLE;

DROP SCHEMA test_bypass CASCADE;
DROP ROLE regress_bypass;
