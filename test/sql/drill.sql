-- drill(): a late holder played in one session, by every path, and rolled back whole.
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

-- Fences that let late holders pass as declared, and those that take less for proof.
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
