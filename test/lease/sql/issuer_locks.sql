-- Lock tables of known libraries: each library's statements in the order in which it sends them.
\set SHOW_CONTEXT never
\set VERBOSITY terse
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA locks;
SET search_path = locks;
CREATE VIEW grants AS SELECT resource, owner, token FROM lockfence.leases ORDER BY resource;

-- ---- ShedLock: the time of the client

CREATE TABLE shedlock (
	name varchar(64) NOT NULL PRIMARY KEY, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(255) NOT NULL);
SELECT lockfence.issue_from('shedlock', preset => 'shedlock');
-- A node takes the lock,
INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES('settle', '2026-01-01 10:10', '2026-01-01 10:00', 'host-a');
TABLE grants;
-- another one fails to,
INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES('settle', '2026-01-01 10:15', '2026-01-01 10:05', 'host-b');
UPDATE shedlock SET lock_until = '2026-01-01 10:15', locked_at = '2026-01-01 10:05', locked_by = 'host-b'
WHERE name = 'settle' AND lock_until <= '2026-01-01 10:05';
-- and the first one extends it.
UPDATE shedlock SET lock_until = '2026-01-01 10:20' WHERE name = 'settle' AND locked_by = 'host-a' AND lock_until > '2026-01-01 10:08';
TABLE grants;
-- It pauses; the same host's other process takes over.
UPDATE shedlock SET lock_until = '2026-01-01 10:40', locked_at = '2026-01-01 10:30', locked_by = 'host-a'
WHERE name = 'settle' AND lock_until <= '2026-01-01 10:30';
TABLE grants;
SELECT lockfence.present('shedlock:settle', 1);
-- That one releases it, and it is taken again.
UPDATE shedlock SET lock_until = '2026-01-01 10:31' WHERE name = 'settle' AND locked_by = 'host-a';
TABLE grants;
UPDATE shedlock SET lock_until = '2026-01-01 10:42', locked_at = '2026-01-01 10:32', locked_by = 'host-b'
WHERE name = 'settle' AND lock_until <= '2026-01-01 10:32';
TABLE grants;

-- ---- ShedLock: the time of the database

PREPARE take(text, text) AS
INSERT INTO shedlock(name, lock_until, locked_at, locked_by)
VALUES($1, timezone('utc', CURRENT_TIMESTAMP) + interval '1 hour', timezone('utc', CURRENT_TIMESTAMP), $2)
ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + interval '1 hour',
	locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = $2
WHERE shedlock.name = $1 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP);
EXECUTE take('report', 'host-a');
EXECUTE take('report', 'host-b');
SELECT * FROM grants WHERE resource = 'shedlock:report';
UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP)
WHERE name = 'report' AND locked_by = 'host-a';
EXECUTE take('report', 'host-b');
SELECT * FROM grants WHERE resource = 'shedlock:report';

-- ---- Spring Integration

CREATE TABLE int_lock (
	LOCK_KEY char(36) NOT NULL, REGION varchar(100) NOT NULL, CLIENT_ID char(36), CREATED_DATE timestamp NOT NULL,
	EXPIRED_AFTER timestamp NOT NULL, CONSTRAINT INT_LOCK_PK PRIMARY KEY (LOCK_KEY, REGION));
SELECT lockfence.issue_from('int_lock', preset => 'spring');
PREPARE spring_update(text, timestamp, text, timestamp) AS
UPDATE INT_LOCK SET CLIENT_ID=$1, EXPIRED_AFTER=$2 WHERE REGION='DEFAULT' AND LOCK_KEY=$3 AND (CLIENT_ID=$1 OR EXPIRED_AFTER<$4);
PREPARE spring_insert(text, timestamp, text, timestamp) AS
INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('DEFAULT', $3, $1, $4, $2);
-- names shorter than the columns are not filled up with blanks
EXECUTE spring_update('client-a', '2026-01-01 10:10', 'settle', '2026-01-01 10:00');
EXECUTE spring_insert('client-a', '2026-01-01 10:10', 'settle', '2026-01-01 10:00');
SELECT * FROM grants WHERE resource LIKE 'spring:%';
EXECUTE spring_update('client-b', '2026-01-01 10:15', 'settle', '2026-01-01 10:05');
EXECUTE spring_insert('client-b', '2026-01-01 10:15', 'settle', '2026-01-01 10:05');
UPDATE INT_LOCK SET EXPIRED_AFTER='2026-01-01 10:20' WHERE REGION='DEFAULT' AND LOCK_KEY='settle' AND CLIENT_ID='client-a';
SELECT * FROM grants WHERE resource LIKE 'spring:%';
-- taken over, released, and taken
EXECUTE spring_update('client-b', '2026-01-01 10:40', 'settle', '2026-01-01 10:30');
SELECT * FROM grants WHERE resource LIKE 'spring:%';
DELETE FROM INT_LOCK WHERE REGION='DEFAULT' AND LOCK_KEY='settle' AND CLIENT_ID='client-b';
EXECUTE spring_insert('client-a', '2026-01-01 10:50', 'settle', '2026-01-01 10:35');
SELECT * FROM grants WHERE resource LIKE 'spring:%';
-- 5.3 and before take the lock in a SERIALIZABLE transaction
BEGIN ISOLATION LEVEL SERIALIZABLE;
DELETE FROM INT_LOCK WHERE REGION='DEFAULT' AND LOCK_KEY='settle' AND CREATED_DATE<'2026-01-01 11:00';
UPDATE INT_LOCK SET CREATED_DATE='2026-01-01 11:10' WHERE REGION='DEFAULT' AND LOCK_KEY='settle' AND CLIENT_ID='client-c';
EXECUTE spring_insert('client-c', '2026-01-01 11:20', 'settle', '2026-01-01 11:10');
COMMIT;
SELECT * FROM grants WHERE resource LIKE 'spring:%';

-- ---- Liquibase

CREATE TABLE databasechangeloglock (
	ID integer NOT NULL PRIMARY KEY, LOCKED boolean NOT NULL, LOCKGRANTED timestamp, LOCKEDBY varchar(255));
SELECT lockfence.issue_from('databasechangeloglock', preset => 'liquibase');
DELETE FROM databasechangeloglock;
INSERT INTO databasechangeloglock (ID, LOCKED) VALUES (1, FALSE);
SELECT count(*) FROM grants WHERE resource = 'liquibase';
UPDATE databasechangeloglock SET LOCKED = TRUE, LOCKEDBY = 'host-a (10.0.0.1)', LOCKGRANTED = NOW() WHERE ID = 1 AND LOCKED = FALSE;
SELECT * FROM grants WHERE resource = 'liquibase';
UPDATE databasechangeloglock SET LOCKED = TRUE, LOCKEDBY = 'host-b (10.0.0.2)', LOCKGRANTED = NOW() WHERE ID = 1 AND LOCKED = FALSE;
UPDATE databasechangeloglock SET LOCKED = FALSE, LOCKEDBY = NULL, LOCKGRANTED = NULL WHERE ID = 1;
SELECT * FROM grants WHERE resource = 'liquibase';
UPDATE databasechangeloglock SET LOCKED = TRUE, LOCKEDBY = 'host-b (10.0.0.2)', LOCKGRANTED = NOW() WHERE ID = 1 AND LOCKED = FALSE;
SELECT * FROM grants WHERE resource = 'liquibase';

-- ---- Hangfire

CREATE TABLE "lock" ("resource" text NOT NULL UNIQUE, "updatecount" integer NOT NULL DEFAULT 0, "acquired" timestamp);
SELECT lockfence.issue_from('"lock"', preset => 'hangfire');
PREPARE hangfire(text, timestamp) AS
INSERT INTO "lock"("resource", "acquired")
SELECT $1, $2
WHERE NOT EXISTS (SELECT 1 FROM "lock" WHERE "resource" = $1)
ON CONFLICT DO NOTHING;
BEGIN ISOLATION LEVEL REPEATABLE READ;
EXECUTE hangfire('settle', '2026-01-01 10:00');
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
EXECUTE hangfire('settle', '2026-01-01 10:05');
COMMIT;
SELECT * FROM grants WHERE resource LIKE 'hangfire:%';
-- taken over
BEGIN ISOLATION LEVEL REPEATABLE READ;
DELETE FROM "lock" WHERE "resource" = 'settle' AND "acquired" < '2026-01-01 10:20';
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
EXECUTE hangfire('settle', '2026-01-01 10:30');
COMMIT;
SELECT * FROM grants WHERE resource LIKE 'hangfire:%';
-- the one before releases what it has not: the row of the new holder
DELETE FROM "lock" WHERE "resource" = 'settle';
SELECT * FROM grants WHERE resource LIKE 'hangfire:%';
-- without native transactions: a row is there first, and then taken
INSERT INTO "lock"("resource", "updatecount", "acquired")
SELECT 'other', 0, '2026-01-01 10:00' WHERE NOT EXISTS (SELECT 1 FROM "lock" WHERE "resource" = 'other') ON CONFLICT DO NOTHING;
UPDATE "lock" SET "updatecount" = 1 WHERE "updatecount" = 0 AND "resource" = 'other';
UPDATE "lock" SET "updatecount" = 1 WHERE "updatecount" = 0 AND "resource" = 'other';
SELECT * FROM grants WHERE resource = 'hangfire:other';

-- ---- River: the leader

CREATE UNLOGGED TABLE river_leader (
	elected_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, leader_id text NOT NULL,
	name text PRIMARY KEY DEFAULT 'default' CHECK (name = 'default'));
SELECT lockfence.issue_from('river_leader', preset => 'river-leader');
PREPARE elect(text, timestamptz) AS
INSERT INTO river_leader (leader_id, elected_at, expires_at) VALUES ($1, $2, $2 + make_interval(secs => 10))
ON CONFLICT (name) DO NOTHING RETURNING leader_id;
EXECUTE elect('client-a', '2026-01-01 10:00:00+00');
EXECUTE elect('client-b', '2026-01-01 10:00:05+00');
UPDATE river_leader SET expires_at = timestamptz '2026-01-01 10:00:15+00'
WHERE elected_at = '2026-01-01 10:00:00+00' AND expires_at >= '2026-01-01 10:00:05+00' AND leader_id = 'client-a' RETURNING leader_id;
SELECT * FROM grants WHERE resource LIKE 'river:%';
DELETE FROM river_leader WHERE expires_at < '2026-01-01 10:00:20+00';
EXECUTE elect('client-b', '2026-01-01 10:00:20+00');
SELECT * FROM grants WHERE resource LIKE 'river:%';
WITH currently_held_leaders AS (
	SELECT * FROM river_leader WHERE elected_at = '2026-01-01 10:00:20+00' AND leader_id = 'client-b' FOR UPDATE)
DELETE FROM river_leader USING currently_held_leaders;
EXECUTE elect('client-a', '2026-01-01 10:00:30+00');
SELECT * FROM grants WHERE resource LIKE 'river:%';

-- Nothing was added to the tables, and nothing is wrong.
SELECT attrelid::regclass, string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute
WHERE attrelid IN (SELECT target FROM lockfence.issuers) AND attnum > 0 GROUP BY attrelid ORDER BY attrelid::regclass::text COLLATE "C";
SELECT * FROM lockfence.issuers ORDER BY target::text COLLATE "C";
SELECT code, problem FROM lockfence.verify() WHERE severity <> 'info';
DROP SCHEMA locks CASCADE;
SELECT count(*) FROM lockfence.issuers;
SELECT code, problem FROM lockfence.verify() WHERE severity <> 'info';
DELETE FROM lockfence.lease WHERE expires_at IS NULL;
