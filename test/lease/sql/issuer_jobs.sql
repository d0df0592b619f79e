-- Job tables of known libraries: each library's statements in the order in which it sends them.
\set SHOW_CONTEXT never
\set VERBOSITY terse
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA jobs;
SET search_path = jobs;
CREATE VIEW grants AS SELECT resource, owner, token FROM lockfence.leases ORDER BY resource COLLATE "C";

-- ---- db-scheduler

CREATE TABLE scheduled_tasks (
	task_name text NOT NULL, task_instance text NOT NULL, task_data bytea, execution_time timestamptz NOT NULL,
	picked boolean NOT NULL, picked_by text, last_success timestamptz, last_failure timestamptz, consecutive_failures int,
	last_heartbeat timestamptz, version bigint NOT NULL, priority smallint, PRIMARY KEY (task_name, task_instance));
SELECT lockfence.issue_from('scheduled_tasks', preset => 'db-scheduler');
INSERT INTO scheduled_tasks(task_name, task_instance, task_data, execution_time, picked, version)
VALUES ('settle', '9921', NULL, '2026-01-01 10:00+00', false, 1);
SELECT count(*) FROM grants WHERE resource LIKE 'db-%';
-- one is picked by its version
PREPARE pick(text, bigint) AS
UPDATE scheduled_tasks SET picked = true, picked_by = $1, last_heartbeat = '2026-01-01 10:00+00', version = version + 1
WHERE picked = false AND task_name = 'settle' AND task_instance = '9921' AND version = $2;
EXECUTE pick('host-a', 1);
EXECUTE pick('host-b', 1);
UPDATE scheduled_tasks SET last_heartbeat = '2026-01-01 10:05+00' WHERE task_name = 'settle' AND task_instance = '9921' AND version = 2;
SELECT * FROM grants WHERE resource LIKE 'db-%';
-- a dead execution is given back, and picked by the same host in the other way, many at once
UPDATE scheduled_tasks SET picked = false, picked_by = NULL, last_heartbeat = NULL, last_failure = '2026-01-01 10:30+00',
	consecutive_failures = 1, execution_time = '2026-01-01 10:30+00', version = version + 1
WHERE task_name = 'settle' AND task_instance = '9921' AND version = 2;
INSERT INTO scheduled_tasks(task_name, task_instance, execution_time, picked, version) VALUES ('settle', '9922', '2026-01-01 10:00+00', false, 1);
SELECT * FROM grants WHERE resource LIKE 'db-%';
WITH locked_executions AS (
	UPDATE scheduled_tasks st1 SET picked = true, picked_by = 'host-a', last_heartbeat = '2026-01-01 10:31+00', version = version + 1
	WHERE (st1.task_name, st1.task_instance) IN (
		SELECT st2.task_name, st2.task_instance FROM scheduled_tasks st2
		WHERE picked = false AND execution_time <= '2026-01-01 10:31+00' ORDER BY execution_time ASC FOR UPDATE SKIP LOCKED LIMIT 10)
	RETURNING st1.*)
SELECT task_instance, version FROM locked_executions ORDER BY task_instance;
SELECT * FROM grants WHERE resource LIKE 'db-%';
SELECT lockfence.present('db-scheduler:settle:9921', 1);
UPDATE scheduled_tasks SET picked = false, picked_by = NULL, version = version + 1
WHERE picked = true AND version = 2 AND task_name = 'settle' AND task_instance = '9922';
DELETE FROM scheduled_tasks WHERE task_name = 'settle' AND task_instance = '9921' AND version = 4;
SELECT * FROM grants WHERE resource LIKE 'db-%';

-- ---- River

CREATE TYPE river_job_state AS ENUM ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled');
CREATE TABLE river_job (
	id bigint PRIMARY KEY, state river_job_state NOT NULL DEFAULT 'available', attempt smallint NOT NULL DEFAULT 0,
	max_attempts smallint NOT NULL DEFAULT 25, attempted_at timestamptz, finalized_at timestamptz,
	scheduled_at timestamptz NOT NULL DEFAULT '2026-01-01 10:00+00', priority smallint NOT NULL DEFAULT 1, attempted_by text[],
	errors jsonb[], kind text NOT NULL, metadata jsonb NOT NULL DEFAULT '{}', queue text NOT NULL DEFAULT 'default');
SELECT lockfence.issue_from('river_job', preset => 'river');
INSERT INTO river_job (id, kind) VALUES (1, 'settle');
PREPARE river_fetch(text, timestamptz) AS
WITH locked_jobs AS (
	SELECT * FROM river_job WHERE state = 'available' AND queue = 'default' AND scheduled_at <= $2
	ORDER BY priority ASC, scheduled_at ASC, id ASC LIMIT 5 FOR UPDATE SKIP LOCKED)
UPDATE river_job SET state = 'running', attempt = river_job.attempt + 1, attempted_at = $2,
	attempted_by = array_append(river_job.attempted_by, $1)
FROM locked_jobs WHERE river_job.id = locked_jobs.id RETURNING river_job.id, river_job.attempt;
EXECUTE river_fetch('client-a', '2026-01-01 10:00:00.25+00');
EXECUTE river_fetch('client-b', '2026-01-01 10:00:01+00');
SELECT * FROM grants WHERE resource LIKE 'river:%';
-- a snooze writes the attempt back
UPDATE river_job SET attempt = 0, state = CASE WHEN state = 'running' THEN 'scheduled'::river_job_state ELSE state END,
	scheduled_at = '2026-01-01 10:10+00' WHERE id = 1 AND state = 'running';
SELECT * FROM grants WHERE resource LIKE 'river:%';
UPDATE river_job SET state = 'available' WHERE id = 1 AND state = 'scheduled' AND scheduled_at <= '2026-01-01 10:10+00';
EXECUTE river_fetch('client-a', '2026-01-01 10:10:00+00');
SELECT * FROM grants WHERE resource LIKE 'river:%';
-- stuck, and rescued
UPDATE river_job SET errors = array_append(errors, '{"error": "stuck"}'::jsonb), finalized_at = NULL,
	scheduled_at = '2026-01-01 11:10+00', state = 'retryable' WHERE id = 1;
UPDATE river_job SET state = 'available' WHERE state = 'retryable';
EXECUTE river_fetch('client-b', '2026-01-01 11:10:00+00');
UPDATE river_job SET state = 'completed', finalized_at = '2026-01-01 11:11+00' WHERE id = 1 AND state = 'running';
SELECT * FROM grants WHERE resource LIKE 'river:%';

-- ---- graphile-worker

CREATE TABLE _private_jobs (
	id bigint PRIMARY KEY, job_queue_id int, task_id int NOT NULL, payload json NOT NULL DEFAULT '{}', priority smallint NOT NULL DEFAULT 0,
	run_at timestamptz NOT NULL DEFAULT now(), attempts smallint NOT NULL DEFAULT 0, max_attempts smallint NOT NULL DEFAULT 25,
	last_error text, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), key text UNIQUE,
	locked_at timestamptz, locked_by text, revision int NOT NULL DEFAULT 0, flags jsonb,
	is_available boolean NOT NULL GENERATED ALWAYS AS (locked_at IS NULL AND attempts < max_attempts) STORED);
SELECT lockfence.issue_from('_private_jobs', preset => 'graphile-worker');
INSERT INTO _private_jobs (id, task_id, key) VALUES (1, 1, 'settle');
PREPARE get_job(text) AS
WITH j AS (
	SELECT jobs.job_queue_id, jobs.priority, jobs.run_at, jobs.id FROM _private_jobs AS jobs
	WHERE jobs.is_available = true AND run_at <= now() AND task_id = 1
	ORDER BY priority ASC, run_at ASC LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE _private_jobs AS jobs SET attempts = jobs.attempts + 1, locked_by = $1, locked_at = now()
FROM j WHERE jobs.id = j.id RETURNING jobs.id, jobs.attempts, jobs.locked_by;
EXECUTE get_job('worker-a');
EXECUTE get_job('worker-b');
SELECT * FROM grants WHERE resource LIKE 'graphile-worker:%';
-- it fails, and is got again
UPDATE _private_jobs AS jobs SET last_error = 'x', run_at = run_at - interval '1 second', locked_by = null, locked_at = null
WHERE id = 1 AND locked_by = 'worker-a';
SELECT * FROM grants WHERE resource LIKE 'graphile-worker:%';
EXECUTE get_job('worker-b');
-- a worker that is gone: its jobs are given back, and job_key resets the attempts
UPDATE _private_jobs SET locked_at = null, locked_by = null WHERE locked_by = ANY (ARRAY['worker-b']);
INSERT INTO _private_jobs (id, task_id, key) VALUES (2, 1, 'settle')
ON CONFLICT (key) DO UPDATE SET task_id = excluded.task_id, run_at = _private_jobs.run_at, attempts = 0, last_error = null,
	revision = _private_jobs.revision + 1, locked_at = null, locked_by = null WHERE _private_jobs.locked_at IS NULL;
EXECUTE get_job('worker-a');
SELECT * FROM grants WHERE resource LIKE 'graphile-worker:%';
DELETE FROM _private_jobs WHERE id = 1;

-- ---- pg-boss, whose table is partitioned by queue

CREATE TYPE job_state AS ENUM ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');
CREATE TABLE job (
	id uuid NOT NULL, name text NOT NULL, priority integer NOT NULL DEFAULT 0, data jsonb, state job_state NOT NULL DEFAULT 'created',
	retry_limit integer NOT NULL DEFAULT 2, retry_count integer NOT NULL DEFAULT 0, start_after timestamptz NOT NULL DEFAULT now() - interval '1 day',
	started_on timestamptz, singleton_key text, expire_in interval NOT NULL DEFAULT interval '15 minutes',
	created_on timestamptz NOT NULL DEFAULT now(), completed_on timestamptz, policy text) PARTITION BY LIST (name);
ALTER TABLE job ADD PRIMARY KEY (name, id);
-- two jobs of one key are both in their first attempt
SELECT lockfence.issue_from('job', resource => 'settle:{singleton_key}', preset => 'pg-boss');
SELECT lockfence.issue_from('job', resource => 'settle:{name}', preset => 'pg-boss');
SELECT lockfence.issue_from('job', preset => 'pg-boss');
-- a queue is made later
CREATE TABLE j1 (LIKE job INCLUDING DEFAULTS);
ALTER TABLE j1 ADD PRIMARY KEY (name, id);
ALTER TABLE job ATTACH PARTITION j1 FOR VALUES IN ('settle');
SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger WHERE tgname ~ 'lockfence' AND tgrelid IN ('job'::regclass, 'j1'::regclass) ORDER BY 1::text;
INSERT INTO job (id, name) VALUES ('00000000-0000-0000-0000-000000000001', 'settle');
PREPARE fetch_next AS
WITH next AS (
	SELECT id FROM job WHERE name = 'settle' AND state < 'active' AND start_after < now()
	ORDER BY priority DESC, created_on, id LIMIT 2 FOR UPDATE SKIP LOCKED)
UPDATE job j SET state = 'active', started_on = now(),
	retry_count = CASE WHEN started_on IS NOT NULL THEN retry_count + 1 ELSE retry_count END
FROM next WHERE name = 'settle' AND j.id = next.id RETURNING j.name, j.retry_count;
EXECUTE fetch_next;
EXECUTE fetch_next;
SELECT * FROM grants WHERE resource LIKE 'pg-boss:%';
-- expired: the row is deleted and comes anew, with its time of start
WITH deleted_jobs AS (
	DELETE FROM job WHERE state = 'active' RETURNING *
), retried_jobs AS (
	INSERT INTO job (id, name, state, retry_limit, retry_count, started_on)
	SELECT id, name, CASE WHEN retry_count < retry_limit THEN 'retry'::job_state ELSE 'failed' END, retry_limit, retry_count, started_on
	FROM deleted_jobs ON CONFLICT DO NOTHING RETURNING *)
SELECT count(*) FROM retried_jobs;
SELECT * FROM grants WHERE resource LIKE 'pg-boss:%';
EXECUTE fetch_next;
SELECT * FROM grants WHERE resource LIKE 'pg-boss:%';
-- complete is by id alone, and grants nothing
UPDATE job SET completed_on = now(), state = 'completed' WHERE name = 'settle' AND id IN ('00000000-0000-0000-0000-000000000001') AND state = 'active';
SELECT * FROM grants WHERE resource LIKE 'pg-boss:%';

-- ---- good_job, lock strategy skiplocked

CREATE TABLE good_jobs (
	id uuid PRIMARY KEY, queue_name text, priority int, serialized_params jsonb, scheduled_at timestamp, performed_at timestamp,
	finished_at timestamp, locked_by_id uuid, locked_at timestamp, lock_type smallint);
SELECT lockfence.issue_from('good_jobs', preset => 'good_job');
INSERT INTO good_jobs (id, queue_name) VALUES ('00000000-0000-0000-0000-000000000002', 'default');
PREPARE claim(uuid) AS
WITH candidate AS MATERIALIZED (
	SELECT id FROM good_jobs WHERE finished_at IS NULL AND locked_by_id IS NULL ORDER BY priority ASC NULLS LAST LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
UPDATE good_jobs SET locked_by_id = $1, locked_at = '2026-01-01 10:00', lock_type = 1
FROM candidate WHERE good_jobs.id = candidate.id RETURNING good_jobs.queue_name;
EXECUTE claim('00000000-0000-0000-0000-00000000000a');
EXECUTE claim('00000000-0000-0000-0000-00000000000b');
UPDATE good_jobs SET performed_at = '2026-01-01 10:00' WHERE id = '00000000-0000-0000-0000-000000000002';
SELECT * FROM grants WHERE resource LIKE 'good_job:%';
-- the process is gone: its jobs are unlocked, and claimed
UPDATE good_jobs SET locked_by_id = NULL WHERE locked_by_id = '00000000-0000-0000-0000-00000000000a';
EXECUTE claim('00000000-0000-0000-0000-00000000000b');
UPDATE good_jobs SET locked_by_id = NULL, locked_at = NULL, lock_type = NULL, finished_at = now() WHERE id = '00000000-0000-0000-0000-000000000002';
SELECT * FROM grants WHERE resource LIKE 'good_job:%';

-- ---- Solid Queue

CREATE TABLE solid_queue_claimed_executions (
	id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, job_id bigint NOT NULL UNIQUE, process_id bigint, created_at timestamp NOT NULL);
SELECT lockfence.issue_from('solid_queue_claimed_executions', preset => 'solid_queue');
INSERT INTO solid_queue_claimed_executions (job_id, process_id, created_at)
VALUES (7, 1, '2026-01-01 10:00'), (8, 1, '2026-01-01 10:00') RETURNING job_id;
INSERT INTO solid_queue_claimed_executions (job_id, process_id, created_at) VALUES (7, 2, '2026-01-01 10:00');
SELECT * FROM grants WHERE resource LIKE 'solid_queue:%';
-- the process is pruned: released, and claimed again; the other one finishes
DELETE FROM solid_queue_claimed_executions WHERE job_id = 7;
INSERT INTO solid_queue_claimed_executions (job_id, process_id, created_at) VALUES (7, 2, '2026-01-01 10:10') RETURNING job_id;
DELETE FROM solid_queue_claimed_executions WHERE job_id = 8;
SELECT * FROM grants WHERE resource LIKE 'solid_queue:%';

SELECT code, problem FROM lockfence.verify() WHERE severity <> 'info';
DROP SCHEMA jobs CASCADE;
DELETE FROM lockfence.lease WHERE expires_at IS NULL;
