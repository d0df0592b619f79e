-- By hand: a row trigger in PL/pgSQL that looks the mark up under a lock that holders share, and writes it if it rises.
ALTER TABLE target ADD fence bigint NOT NULL DEFAULT 5;
CREATE TABLE mark (resource text COLLATE "C" PRIMARY KEY, token bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO mark SELECT DISTINCT :'variant' || ':batch-' || batch, 5 FROM batches;
VACUUM ANALYZE mark;
CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	name CONSTANT text COLLATE "C" := tg_argv[0] || new.batch;
BEGIN
	PERFORM FROM mark WHERE resource = name AND token = new.fence FOR SHARE;
	IF FOUND THEN
		RETURN new;
	END IF;
	INSERT INTO mark AS m VALUES (name, new.fence)
	ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE m.token <= excluded.token;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'stale token % for %', new.fence, name;
	END IF;
	RETURN new;
END
$$;
SELECT format('CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON target FOR EACH ROW EXECUTE FUNCTION guard(%L)',
	:'variant' || ':batch-') \gexec
-- each
UPDATE target SET v = :v, fence = :token WHERE id = :id;
