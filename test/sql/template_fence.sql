-- Named fences with a template: the mark lives under the resource's name and outlives the rows.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_template;
SET search_path = test_template;
CREATE VIEW marks AS SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'template:%' ORDER BY resource;
CREATE TABLE batch (id integer PRIMARY KEY, region text NOT NULL, state text);
INSERT INTO batch VALUES (1, 'eu', 'old'), (2, 'us', 'old'), (3, 'eu', 'old');
SELECT lockfence.attach('batch', 'template:{region}', 'token');
SELECT kind, resource, token_column FROM lockfence.fences WHERE target = 'batch'::regclass;
SELECT lockfence.resource_of('batch', b) FROM batch b ORDER BY id;

-- Through the column.
UPDATE batch SET state = 'open', token = 10 WHERE id = 1;
SELECT * FROM marks;
-- All rows of the resource share its mark.
UPDATE batch SET state = 'stale', token = 9 WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
UPDATE batch SET state = 'open', token = 10 WHERE id = 3;
-- Another resource has its own.
UPDATE batch SET state = 'open', token = 5 WHERE id = 2;
SELECT * FROM marks;
SELECT * FROM batch ORDER BY id;

-- inherited token: an UPDATE that omits the column
UPDATE batch SET state = 'inherited' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
DELETE FROM batch WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
UPDATE batch SET state = 'null', token = NULL WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO batch VALUES (4, 'eu', 'new');
INSERT INTO batch VALUES (4, 'eu', 'new', NULL);
INSERT INTO batch VALUES (4, 'eu', 'new', 0);

-- Through present() for the resource.
BEGIN;
SELECT lockfence.present('template:eu', 11);
UPDATE batch SET state = 'presented' WHERE region = 'eu';
INSERT INTO batch VALUES (4, 'eu', 'new');
DELETE FROM batch WHERE id = 1;
SELECT * FROM batch ORDER BY id;
COMMIT;
-- A token for another resource proves nothing.
BEGIN;
SELECT lockfence.present('template:us', 12);
UPDATE batch SET state = 'other' WHERE region = 'eu';
ROLLBACK;
-- The ambient token serves whatever the writes touch.
BEGIN;
SELECT lockfence.present(20);
UPDATE batch SET state = 'ambient';
SELECT * FROM lockfence.presented() ORDER BY resource NULLS FIRST;
SELECT * FROM batch ORDER BY id;
COMMIT;
SELECT * FROM marks;

-- Order of the sources: all that are there must agree.
BEGIN;
SELECT lockfence.present('template:eu', 20);
SELECT lockfence.present(21);
UPDATE batch SET state = 'conflict' WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT lockfence.present('template:eu', 20);
UPDATE batch SET state = 'conflict', token = 21 WHERE id = 3;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT lockfence.present(20);
UPDATE batch SET state = 'conflict', token = 21 WHERE id = 3;
ROLLBACK;
BEGIN;
SELECT lockfence.present(20);
SELECT lockfence.present('template:eu', 20);
UPDATE batch SET state = 'agreed', token = 20 WHERE id = 3;
COMMIT;

-- The mark outlives the rows.
BEGIN;
SELECT lockfence.present(30);
DELETE FROM batch;
COMMIT;
INSERT INTO batch VALUES (1, 'eu', 'stale', 29);
INSERT INTO batch VALUES (1, 'eu', 'new', 30);
INSERT INTO batch VALUES (2, 'us', 'new', 30);
SELECT * FROM marks;

-- A row that moves between resources is checked for both.
UPDATE batch SET region = 'us', token = 31 WHERE id = 1;
SELECT * FROM marks;
BEGIN;
SELECT lockfence.present('template:us', 32);
-- ... the one it leaves
UPDATE batch SET region = 'eu' WHERE id = 1;
ROLLBACK;
SELECT lockfence.present('template:eu', 40);
-- ... the one it comes to
UPDATE batch SET region = 'eu', token = 35 WHERE id = 1;
BEGIN;
SELECT lockfence.present('template:us', 35);
UPDATE batch SET region = 'eu' WHERE id = 1;
ROLLBACK;
BEGIN;
SELECT lockfence.present('template:us', 35);
SELECT lockfence.present('template:eu', 40);
UPDATE batch SET region = 'eu' WHERE id = 1;
SELECT * FROM batch ORDER BY id;
ROLLBACK;
SELECT * FROM marks;

-- A token stored in the row stands for a mark that is missing, as after a restore of the table alone.
INSERT INTO batch VALUES (5, 'north', 'seeded', 50);
SELECT lockfence.reset_mark('template:south', 1, 'to have a resource without a stored token');
BEGIN;
SET LOCAL lockfence.bypass = on;
UPDATE batch SET region = 'far north' WHERE id = 5;
COMMIT;
UPDATE batch SET state = 'stale', token = 49 WHERE id = 5;
UPDATE batch SET state = 'seeded', token = 50 WHERE id = 5;
SELECT * FROM marks WHERE resource = 'template:far north';

-- Several placeholders, and a template whose values run together.
CREATE TABLE seat (flight text, "row" integer, seat text, PRIMARY KEY (flight, "row", seat));
SELECT lockfence.attach('seat', 'template:{flight}/{row}{seat}');
SELECT lockfence.present('template:LH1/12A', 3);
INSERT INTO seat VALUES ('LH1', 12, 'A');
BEGIN;
SELECT lockfence.present('template:LH1/12A', 3);
INSERT INTO seat VALUES ('LH1', 12, 'A');
COMMIT;

-- No token column: presented tokens only.
SELECT token_column FROM lockfence.fences WHERE target = 'seat'::regclass;
DELETE FROM seat;

-- Two tables may share a resource.
CREATE TABLE line (region text, amount numeric);
SELECT lockfence.attach('line', 'template:{region}');
BEGIN;
SELECT lockfence.present('template:shared', 7);
INSERT INTO line VALUES ('shared', 1);
INSERT INTO batch VALUES (7, 'shared', 'both');
COMMIT;
BEGIN;
SELECT lockfence.present(6);
INSERT INTO line VALUES ('shared', 1);
ROLLBACK;

DROP SCHEMA test_template CASCADE;
