-- drill(): a stale holder played in one session, by every path, and rolled back whole.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_drill;
SET search_path = test_drill;
CREATE TABLE plain (id bigint PRIMARY KEY, state text);
CREATE TABLE account (id bigint PRIMARY KEY, state text);
CREATE TABLE batch (region text, no integer, state text, amounts numeric(10,2)[], PRIMARY KEY (no, region));
CREATE TABLE ledger (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text,
	shout text GENERATED ALWAYS AS (upper(state)) STORED) PARTITION BY RANGE (id);
CREATE TABLE ledger_0 PARTITION OF ledger FOR VALUES FROM (0) TO (100);
INSERT INTO plain VALUES (1, 'new');
INSERT INTO account VALUES (1, 'new');
INSERT INTO batch VALUES ('eu', 1, 'new', '{1}');
INSERT INTO ledger (state) VALUES ('new');
SELECT lockfence.attach('account');
SELECT lockfence.attach('batch', 'drill:{region}-{no}', 'token');
SELECT lockfence.attach('ledger', 'drill/ledger');

-- Every path of every kind.  MERGE exists from PostgreSQL 15.
SELECT path, verdict, code, message FROM lockfence.drill('account', '{"id": 1}', '{"state": "late"}') WHERE path <> 'MERGE';
SELECT path, verdict, code, message
FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "it''s late", "amounts": [1, 2.5]}') WHERE path <> 'MERGE';
SELECT path, verdict, code, message FROM lockfence.drill('ledger', '{"id": 1}', '{"state": "late"}') WHERE path <> 'MERGE';
SELECT verdict FROM lockfence.drill('ledger', '{"id": 1}', '{"state": "late"}')
WHERE path = 'MERGE' AND verdict <> CASE WHEN current_setting('server_version_num')::integer < 150000 THEN 'skipped' ELSE 'refused' END;
SELECT path, statement
FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "it''s late", "amounts": [1, 2.5]}')
WHERE path LIKE 'INSERT with%' OR path = 'upsert';

-- A null in the key or the changes is one.
SELECT lockfence._condition('batch', '{"region": null, "no": 1}'), lockfence._assignments('batch', '{"no": 2, "state": null}');

-- What is no fence lets it pass.
SELECT path, verdict, code, message FROM lockfence.drill('plain', '{"id": 1}', '{"state": "late"}') WHERE path <> 'MERGE';

-- Nothing of it stays.
SELECT * FROM plain, account;
SELECT * FROM batch, ledger;
SELECT * FROM lockfence.presented();
SELECT count(*) FROM lockfence.mark WHERE resource LIKE 'drill%';
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
-- ... in a transaction that goes on, either
BEGIN;
SELECT count(*) FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "late"}');
SELECT * FROM lockfence.presented();
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SHOW session_replication_role;
SHOW search_path;
SELECT lockfence.present('drill:eu-1', 7);
UPDATE batch SET state = 'done', token = 7;
COMMIT;
SELECT * FROM batch;
SELECT token FROM lockfence.mark WHERE resource = 'drill:eu-1';
-- ... which must not have presented a token
BEGIN;
SELECT lockfence.present(8);
SELECT count(*) FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "late"}');
ROLLBACK;

-- Tokens are above the mark, the row's, the floor and the epoch's first.
SELECT statement FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "late"}') WHERE path = 'present';
BEGIN;
SELECT lockfence.reset_floor(1000, 'test');
SELECT statement FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "late"}') WHERE path = 'present';
SELECT lockfence.set_epoch(2, 'test');
SELECT statement FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "late"}') WHERE path = 'present';
ROLLBACK;

-- Fences that let stale holders pass as declared, and those that take less for proof.
BEGIN;
SELECT lockfence.detach('batch'), lockfence.attach('batch', 'drill:{region}', missing => 'allow');
SELECT path, verdict FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "late"}')
WHERE verdict NOT IN ('refused', 'skipped');
SELECT lockfence.detach('batch'), lockfence.attach('batch', 'drill:{region}', 'token', enforcement => 'advisory');
SELECT path, verdict FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "late"}') WHERE verdict = 'refused';
SELECT lockfence.detach('batch'), lockfence.attach('batch', 'drill:{region}', 'token', accept => 'presented', repeat => 'reject');
SELECT path, verdict, code FROM lockfence.drill('batch', '{"region": "eu", "no": 1}', '{"state": "late"}')
WHERE verdict NOT IN ('refused', 'skipped') OR path LIKE '% column';
ROLLBACK;

-- A trigger of the table's own runs under the caller's search path.
CREATE TABLE noted (state text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO noted VALUES (new.state);
	RETURN new;
END
$$;
CREATE TRIGGER note BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION note();
SELECT verdict, count(*) > 0 AS some FROM lockfence.drill('account', '{"id": 1}', '{"state": "late"}') GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM noted;
-- ... one that eats writes is no refusal
CREATE OR REPLACE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RETURN NULL;
END
$$;
SELECT lockfence.drill('account', '{"id": 1}', '{"state": "late"}');
DROP TRIGGER note ON account;
CREATE RULE eat AS ON UPDATE TO plain DO INSTEAD NOTHING;
SELECT lockfence.drill('plain', '{"id": 1}', '{"state": "late"}');
DROP RULE eat ON plain;

-- What the table's owner has defined runs as the owner, and nothing of it stays in the session; columns by any name.
CREATE ROLE regress_lf_drill_owner;
GRANT USAGE, CREATE ON SCHEMA test_drill TO regress_lf_drill_owner;
SET ROLE regress_lf_drill_owner;
CREATE DOMAIN odd AS integer CHECK (value % 2 = 1 AND current_user = 'regress_lf_drill_owner');
CREATE TABLE owned (t odd PRIMARY KEY, s text, who text DEFAULT current_user);
INSERT INTO owned VALUES (1, 'new');
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF current_user <> 'regress_lf_drill_owner' THEN
		RAISE EXCEPTION 'run by %', current_user;
	END IF;
	PERFORM set_config('search_path', 'nowhere', false), set_config('work_mem', '64kB', false);
	RETURN coalesce(new, old);
END
$$;
CREATE TRIGGER tell BEFORE INSERT OR UPDATE OR DELETE ON owned FOR EACH ROW EXECUTE FUNCTION tell();
CREATE CONSTRAINT TRIGGER tell_late AFTER INSERT OR UPDATE OR DELETE ON owned DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION tell();
RESET ROLE;
SELECT lockfence.attach('owned', 'drill:owned-{t}', 'r');
SELECT path, verdict, code FROM lockfence.drill('owned', '{"t": 1}', '{"s": "late"}') WHERE path NOT IN ('MERGE', 'COPY');
SHOW search_path;
SHOW work_mem;
SELECT current_user = session_user AS same;
-- ... who need not be the one that may call the guarded functions, but the caller has to have the owner's rights
CREATE ROLE regress_lf_drill_team IN ROLE regress_lf_drill_owner, pg_monitor;
CREATE ROLE regress_lf_drill_other IN ROLE pg_monitor;
GRANT USAGE ON SCHEMA test_drill TO regress_lf_drill_other;
GRANT ALL ON owned TO regress_lf_drill_other;
GRANT EXECUTE ON FUNCTION lockfence.drill(regclass, jsonb, jsonb, text), lockfence._reset_mark(text, lockfence.fence_token),
	lockfence.present(text, lockfence.fence_token), lockfence.present(lockfence.fence_token),
	lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token) TO regress_lf_drill_team, regress_lf_drill_other;
SET client_min_messages = error;
SET ROLE regress_lf_drill_team;
SELECT path, verdict, code FROM lockfence.drill('owned', '{"t": 1}', '{"s": "late"}') WHERE path LIKE 'guarded%';
SET ROLE regress_lf_drill_other;
SELECT lockfence.drill('owned', '{"t": 1}', '{"s": "late"}');
SELECT lockfence._as_owner('owned', 'SELECT 1', '');
SELECT lockfence._guarded_as_owner('owned', '{"t": 1}', NULL, 1, '');
RESET ROLE;
SET client_min_messages = warning;
CREATE VIEW owned_view AS SELECT * FROM owned;
SELECT lockfence.drill('owned_view', '{"t": 1}', '{"s": "late"}');
REVOKE EXECUTE ON FUNCTION lockfence.drill(regclass, jsonb, jsonb, text), lockfence._reset_mark(text, lockfence.fence_token),
	lockfence.present(text, lockfence.fence_token), lockfence.present(lockfence.fence_token),
	lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token) FROM regress_lf_drill_team, regress_lf_drill_other;

-- Errors.
SELECT lockfence.drill('batch', '{"region": "us", "no": 1}', '{"state": "late"}');
SELECT lockfence.drill('batch', '{"region": "eu", "no": 1}', '{}');
SELECT lockfence.drill('batch', NULL, '{"state": "late"}');
SELECT lockfence.drill('batch', '{"country": "eu"}', '{"state": "late"}');
CREATE ROLE regress_lf_drill;
SET ROLE regress_lf_drill;
SELECT lockfence.drill('lockfence.mark', '{"resource": "x"}', '{"token": 1}');
RESET ROLE;
DROP ROLE regress_lf_drill;

DROP SCHEMA test_drill CASCADE;
DROP ROLE regress_lf_drill_team, regress_lf_drill_other, regress_lf_drill_owner;
