-- DML on lockfence.mark, by those who may: it raises marks, and lowers or removes none.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SELECT lockfence.present('marks:a', 10);
CREATE TEMP VIEW marks AS SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'marks:%' ORDER BY resource;
-- a data restore into a live schema: what is newer is kept, what is missing is added
COPY lockfence.mark FROM stdin;
5	2024-01-01 00:00:00+00	marks:a
20	2024-01-01 00:00:00+00	marks:b
\.
SELECT * FROM marks;
INSERT INTO lockfence.mark VALUES (15, now(), 'marks:a'), (3, now(), 'marks:b'), (1, now(), 'marks:c');
SELECT * FROM marks;
INSERT INTO lockfence.mark VALUES (16, now(), 'marks:a') ON CONFLICT (resource) DO UPDATE SET token = 1;
UPDATE lockfence.mark SET token = 17 WHERE resource = 'marks:a';
SELECT * FROM marks;
UPDATE lockfence.mark SET token = 16 WHERE resource = 'marks:a';
\echo :LAST_ERROR_SQLSTATE
DELETE FROM lockfence.mark WHERE resource = 'marks:a';
\echo :LAST_ERROR_SQLSTATE
TRUNCATE lockfence.mark;
\echo :LAST_ERROR_SQLSTATE
SET session_replication_role = replica;
UPDATE lockfence.mark SET token = 16 WHERE resource = 'marks:a';
DELETE FROM lockfence.mark WHERE resource = 'marks:a';
TRUNCATE lockfence.mark;
RESET session_replication_role;
INSERT INTO lockfence.mark VALUES (NULL, now(), 'marks:d');
\echo :LAST_ERROR_SQLSTATE
INSERT INTO lockfence.mark VALUES (1, now(), NULL);
INSERT INTO lockfence.mark VALUES (0, now(), 'marks:d');
\echo :LAST_ERROR_SQLSTATE
INSERT INTO lockfence.mark VALUES (1, now(), '');
-- ... a mark that is given another name stays where it was, too
UPDATE lockfence.mark SET resource = 'marks:e' WHERE resource = 'marks:b';
SELECT * FROM marks;
-- ... and what it raised is in force
SELECT lockfence.present('marks:a', 16);
\echo :LAST_ERROR_SQLSTATE
-- In one transaction with writes of the fence itself.
BEGIN;
SELECT lockfence.present('marks:a', 18);
INSERT INTO lockfence.mark VALUES (17, now(), 'marks:a');
SELECT lockfence.present('marks:a', 18);
INSERT INTO lockfence.mark VALUES (19, now(), 'marks:a');
SELECT lockfence.is_current('marks:a', 18);
ROLLBACK;
-- The key is binary, so no change of a collation can lose a mark.
SELECT collname FROM pg_attribute a JOIN pg_collation c ON c.oid = attcollation
WHERE attrelid = 'lockfence.mark'::regclass AND attname = 'resource';
SELECT relpersistence FROM pg_class WHERE oid = 'lockfence.mark'::regclass;
-- A whole dump takes the marks, the state and the log along.
SELECT c.oid::regclass FROM pg_extension e, unnest(extconfig) c (oid) WHERE extname = 'lockfence' ORDER BY c.oid::regclass::text COLLATE "C";
-- DML on the state is noticed by the fence at once.
BEGIN;
INSERT INTO lockfence.state VALUES ('epoch', 5);
SELECT lockfence.present('marks:a', 18);
ROLLBACK;
INSERT INTO lockfence.state VALUES ('epoch', 32768);
INSERT INTO lockfence.state VALUES ('floor', 0);
INSERT INTO lockfence.state VALUES ('other', 1);
-- The place of a mark that was folded may be another's: nothing is read from there, and nothing written.
SELECT lockfence.present('marks:folded', 5);
SELECT lockfence._fold_mark('marks:folded', 5);
VACUUM (INDEX_CLEANUP true, TRUNCATE false) lockfence.mark;
SELECT count(lockfence.present('marks:filler:' || g, 5)) FROM generate_series(1, 3000) g;
SELECT lockfence.present('marks:folded', 3);
SELECT count(*) FROM lockfence.mark WHERE resource LIKE 'marks:filler:%' AND token = 5;
