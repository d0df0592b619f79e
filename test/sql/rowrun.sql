-- Many rows of one resource: what was accepted for the last row holds for the next one only if nothing differs.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_rowrun;
SET search_path = test_rowrun;
CREATE TABLE line (id int PRIMARY KEY, batch int, fence lockfence.fence_token);
CREATE TABLE other (id int PRIMARY KEY, batch int, fence lockfence.fence_token);
INSERT INTO line VALUES (100, NULL, 10);
SELECT lockfence.attach('line', 'rowrun:{batch}', 'fence'), lockfence.attach('other', 'rowrun:other-{batch}', 'fence');
CREATE VIEW marks AS SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'rowrun:%' ORDER BY resource;
SELECT lockfence.present('rowrun:2', 20), lockfence.present('rowrun:other-1', 20);

INSERT INTO line SELECT g, 1, 10 FROM generate_series(1, 5) g;
UPDATE line SET fence = 10 WHERE batch = 1;
DELETE FROM line WHERE id = 5;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM marks;

-- another token, another resource, another table
INSERT INTO line VALUES (6, 1, 10), (7, 1, 11);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO line VALUES (6, 1, 10), (7, 2, 10);
\echo :LAST_ERROR_SQLSTATE
BEGIN;
INSERT INTO line VALUES (6, 1, 10);
INSERT INTO other VALUES (6, 1, 10);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- a row that moves out of another resource, or had none
BEGIN;
SELECT lockfence.present('rowrun:2', 20);
INSERT INTO line VALUES (8, 2, NULL);
COMMIT;
BEGIN;
UPDATE line SET fence = 10 WHERE id = 1;
SAVEPOINT s;
UPDATE line SET fence = 10, batch = 1 WHERE id = 8;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
UPDATE line SET fence = 10, batch = 1 WHERE id = 100;
COMMIT;

-- a column that is set to no token, after rows that were written by a presented one
BEGIN;
SELECT lockfence.present('rowrun:1', 12);
UPDATE line SET id = id WHERE batch = 1;
SAVEPOINT s;
UPDATE line SET fence = NULL WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
UPDATE line SET fence = -1 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
UPDATE line SET fence = 11 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
-- ... and before an ambient token that differs
SELECT lockfence.present(13);
UPDATE line SET id = id WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- What a savepoint takes back is to be decided again.
BEGIN;
INSERT INTO line VALUES (9, 1, 10);
SAVEPOINT s;
INSERT INTO line VALUES (10, 3, 30);
ROLLBACK TO s;
INSERT INTO line VALUES (10, 3, 30);
SELECT * FROM lockfence.presented() ORDER BY resource;
COMMIT;
SELECT * FROM marks;

-- The next transaction starts anew.
SELECT lockfence.raise_mark('rowrun:3', 40, 'test');
INSERT INTO line VALUES (11, 3, 30);
\echo :LAST_ERROR_SQLSTATE
-- ... and so does what follows an administrator's act.
BEGIN;
INSERT INTO line VALUES (11, 3, 40);
SELECT lockfence.raise_mark('rowrun:3', 50, 'test');
INSERT INTO line VALUES (12, 3, 40);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- A fence that is replaced in between
BEGIN;
INSERT INTO line VALUES (13, 1, 12);
SELECT lockfence.detach('line'), lockfence.attach('line', 'rowrun:other-{batch}', 'fence');
INSERT INTO line VALUES (14, 1, 12);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- A value whose text is a name, which changes in between: an enum's, a table's
CREATE TYPE stage AS ENUM ('raw', 'done');
CREATE TABLE staged (id integer, stage stage);
SELECT lockfence.attach('staged', 'rowrun:stage-{stage}', 'fence');
INSERT INTO staged VALUES (1, 'raw', 10);
SELECT lockfence.raise_mark('rowrun:stage-clean', 20, 'test');
BEGIN;
INSERT INTO staged VALUES (2, 'raw', 10);
ALTER TYPE stage RENAME VALUE 'raw' TO 'clean';
INSERT INTO staged VALUES (3, 'clean', 10);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
CREATE TABLE listed (id integer, name regclass);
SELECT lockfence.attach('listed', 'rowrun:name-{name}', 'fence');
SELECT lockfence.raise_mark('rowrun:name-test_rowrun.listing', 20, 'test');
BEGIN;
INSERT INTO listed VALUES (1, 'staged', 10);
ALTER TABLE staged RENAME TO listing;
INSERT INTO listed VALUES (2, 'listing', 10);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- ... and one whose text the session's settings would change
CREATE TABLE timed (id integer, at timestamptz);
SELECT lockfence.attach('timed', 'rowrun:at-{at}', 'fence');
BEGIN;
INSERT INTO timed VALUES (1, '2026-01-01 00:00+00', 10);
SET LOCAL TimeZone = 'Asia/Tokyo';
INSERT INTO timed VALUES (2, '2026-01-01 09:00+09', 10);
COMMIT;
SELECT * FROM line ORDER BY id;
SELECT * FROM marks;
DROP SCHEMA test_rowrun CASCADE;
