-- The soak test's tables, fences, and what its clients do to them.  See test/soak/run.
CREATE EXTENSION lockfence_lease CASCADE;
CREATE SCHEMA soak;

-- A pretend lock service.
CREATE SEQUENCE soak.issued;

-- Logged by the transaction that was accepted, while it keeps every other token out: so the ids of a
-- resource are in the order of the commits.
CREATE TABLE soak.accepted (
	id bigint GENERATED ALWAYS AS IDENTITY, resource text NOT NULL, token bigint NOT NULL, kind text NOT NULL);

CREATE TABLE soak.refused (kind text PRIMARY KEY, n bigint NOT NULL);

-- What is watched.
CREATE TABLE soak.samples (
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	rss_anon bigint NOT NULL, rss bigint NOT NULL,				-- of the long-lived session, in kB
	marks bigint NOT NULL, heap bigint NOT NULL, index bigint NOT NULL, leases bigint NOT NULL);
CREATE TABLE soak.contexts (
	at timestamptz NOT NULL DEFAULT clock_timestamp(), bytes bigint NOT NULL, own bigint NOT NULL, fences int NOT NULL);

CREATE FUNCTION soak.make_batch() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE soak.batch (id int PRIMARY KEY, note text, memo text);
	INSERT INTO soak.batch SELECT g, '' FROM generate_series(1, 10) g;
	PERFORM lockfence.attach('soak.batch', 'batch-{id}', token_column => 'fence');
END
$$;

CREATE FUNCTION soak.make_part() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE soak.part (id int PRIMARY KEY, note text, memo text) PARTITION BY RANGE (id);
	CREATE TABLE soak.part_1 PARTITION OF soak.part FOR VALUES FROM (1) TO (4);
	CREATE TABLE soak.part_2 PARTITION OF soak.part FOR VALUES FROM (4) TO (8);
	CREATE TABLE soak.part_3 PARTITION OF soak.part FOR VALUES FROM (8) TO (11);
	INSERT INTO soak.part SELECT g, '' FROM generate_series(1, 10) g;
	PERFORM lockfence.attach('soak.part', 'part-{id}', token_column => 'fence');
END
$$;

SELECT soak.make_batch(), soak.make_part();

CREATE TABLE soak.doc (id int PRIMARY KEY, note text);
INSERT INTO soak.doc SELECT g, '' FROM generate_series(1, 10) g;
SELECT lockfence.attach('soak.doc');

CREATE TABLE soak.job (id int PRIMARY KEY, note text);
INSERT INTO soak.job VALUES (1, '');
SELECT lockfence.attach('soak.job', 'job-1');

-- The token to write with: the one that this transaction has, or of a new grant, or the last one, or a stale one.
CREATE FUNCTION soak.choose(lock text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	held bigint := (SELECT token FROM lockfence.presented() WHERE resource = lock);
	mark bigint := CASE WHEN lock LIKE 'doc-%' THEN (SELECT fence FROM soak.doc WHERE id = substr(lock, 5)::int)
		ELSE (SELECT token FROM lockfence.mark WHERE resource = lock) END;
BEGIN
	RETURN CASE
		WHEN held IS NOT NULL THEN held
		WHEN mark IS NULL OR random() < 0.25 THEN nextval('soak.issued')
		ELSE greatest(mark - CASE WHEN random() < 0.15 THEN 1 ELSE 0 END, 1)
	END;
END
$$;

CREATE FUNCTION soak.write_to(kind text, row_id int, lock text, token bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CASE kind
		WHEN 'batch' THEN
			PERFORM lockfence.present(lock, token);
			UPDATE soak.batch SET note = 'batch' WHERE id = row_id;
		WHEN 'guarded' THEN
			PERFORM lockfence.guarded_update('soak.batch', jsonb_build_object('id', row_id), '{"note": "guarded"}', token);
		WHEN 'part' THEN
			PERFORM lockfence.present(lock, token);
			INSERT INTO soak.part (id, note) VALUES (row_id, 'part')
			ON CONFLICT (id) DO UPDATE SET note = excluded.note;
		WHEN 'doc' THEN
			UPDATE soak.doc SET fence = write_to.token, note = 'doc' WHERE id = row_id;
		WHEN 'job' THEN
			PERFORM lockfence.present(lock, token);
			UPDATE soak.job SET note = 'job';
	END CASE;
END
$$;

-- One write in a savepoint, which takes it back now and then.  A stale token is counted.
CREATE FUNCTION soak.write(kind text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	row_id int := CASE kind WHEN 'job' THEN 1 ELSE 1 + floor(random() * 10) END;
	lock text := CASE kind WHEN 'guarded' THEN 'batch' ELSE kind END || '-' || row_id;
	token bigint := soak.choose(lock);
BEGIN
	PERFORM soak.write_to(kind, row_id, lock, token);
	INSERT INTO soak.accepted (resource, token, kind) VALUES (lock, token, kind);
	IF random() < 0.1 THEN
		RAISE EXCEPTION USING ERRCODE = 'SOAK1', MESSAGE = 'taken back';
	END IF;
EXCEPTION
	WHEN SQLSTATE 'LF001' THEN
		INSERT INTO soak.refused VALUES (kind, 1) ON CONFLICT ON CONSTRAINT refused_pkey DO UPDATE SET n = refused.n + 1;
	WHEN SQLSTATE 'SOAK1' THEN
		NULL;
	WHEN query_canceled OR deadlock_detected THEN
		-- It waited for the table's lock behind the DDL, which waited for a transaction with a higher token,
		-- which waited for this one; the lower token gives way.
		INSERT INTO soak.refused VALUES ('deadlock', 1) ON CONFLICT ON CONSTRAINT refused_pkey DO UPDATE SET n = refused.n + 1;
	WHEN undefined_table THEN
		-- guarded_update() was given the table, not its name, and that one was dropped meanwhile
		IF kind <> 'guarded' THEN
			RAISE;
		END IF;
END
$$;

-- A resource that is seen once, for prune() to fold.
CREATE FUNCTION soak.write_once() RETURNS void LANGUAGE sql AS $$
	SELECT lockfence.present('once-' || token, token) FROM nextval('soak.issued') token
$$;

-- 50 leases, of which each is renewed in its turn.
CREATE SEQUENCE soak.renewals MINVALUE 0;
SELECT count(token) FROM generate_series(0, 49) n, lockfence.acquire('lease-' || n, 'soak', '1 hour');
CREATE FUNCTION soak.renew() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	leased text := 'lease-' || nextval('soak.renewals') % 50;
	held bigint := (SELECT token FROM lockfence.leases WHERE resource = leased);
BEGIN
	PERFORM lockfence.renew(leased, held, '1 hour');
EXCEPTION
	WHEN SQLSTATE 'LF001' THEN
		-- prune() has folded its mark, and the floor is above it
		PERFORM lockfence.release(leased, held);
		PERFORM lockfence.acquire(leased, 'soak', '1 hour');
END
$$;
CREATE PROCEDURE soak.renew_many(times int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. times LOOP
		PERFORM soak.renew();
		COMMIT;
	END LOOP;
END
$$;

-- DDL on the fenced tables, one step per call.  Each transaction has one table, locked first.
CREATE SEQUENCE soak.steps MINVALUE 0;
CREATE FUNCTION soak.ddl() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	step bigint := nextval('soak.steps');
	target text := CASE WHEN step % 2 = 0 THEN 'soak.batch' ELSE 'soak.part' END;
	resource text := CASE WHEN step % 2 = 0 THEN 'batch' ELSE 'part' END || '-{id}';
	accept text := CASE WHEN random() < 0.5 THEN 'any' ELSE 'presented' END;
	remedy text;
BEGIN
	EXECUTE format('LOCK TABLE %s', target);
	CASE step / 2 % 7
		WHEN 0 THEN
			EXECUTE format('ALTER TABLE %s ADD COLUMN extra int', target);
		WHEN 1 THEN
			EXECUTE format('ALTER TABLE %s DROP COLUMN extra', target);
		WHEN 2 THEN
			EXECUTE format('ALTER TABLE %s RENAME COLUMN memo TO renamed', target);
			EXECUTE format('ALTER TABLE %s RENAME TO renamed', target);
			EXECUTE format('ALTER TABLE soak.renamed RENAME TO %s', split_part(target, '.', 2));
		WHEN 3 THEN
			PERFORM lockfence.detach(target);
			EXECUTE format('ALTER TABLE %s RENAME COLUMN id TO key', target);
			PERFORM lockfence.attach(target, replace(resource, 'id', 'key'), token_column => 'fence');
			PERFORM lockfence.detach(target);
			EXECUTE format('ALTER TABLE %s RENAME COLUMN key TO id', target);
			PERFORM lockfence.attach(target, resource, token_column => 'fence', accept => accept);
		WHEN 4 THEN
			IF target = 'soak.part' THEN
				ALTER TABLE soak.part DETACH PARTITION soak.part_1;
				ALTER TABLE soak.part ATTACH PARTITION soak.part_1 FOR VALUES FROM (1) TO (4);
				-- in the same transaction, so that no writer finds it off the record
				PERFORM lockfence.reconcile('soak.part_1');
				CREATE TABLE soak.part_4 PARTITION OF soak.part FOR VALUES FROM (11) TO (20);
				FOR remedy IN SELECT v.remedy FROM lockfence.verify(target) v WHERE v.severity = 'error' AND v.remedy IS NOT NULL LOOP
					EXECUTE remedy;
				END LOOP;
			ELSE
				PERFORM lockfence.detach('soak.job');
				PERFORM lockfence.attach('soak.job', 'job-1');
			END IF;
		WHEN 5 THEN
			DROP TABLE IF EXISTS soak.part_4;
			EXECUTE format('ALTER TABLE %s SET (fillfactor = 90)', CASE target WHEN 'soak.part' THEN 'soak.part_2' ELSE target END);
		WHEN 6 THEN
			EXECUTE format('DROP TABLE %s', target);
			EXECUTE format('SELECT soak.make_%s()', split_part(target, '.', 2));
	END CASE;
END
$$;
