-- By hand: a table of marks, upserted in the statement that writes, in one round trip.
CREATE TABLE mark (resource text COLLATE "C" PRIMARY KEY, token bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO mark SELECT DISTINCT :'variant' || ':batch-' || batch, 5 FROM batches;
VACUUM ANALYZE mark;
-- each
WITH accepted AS (
INSERT INTO mark AS m VALUES (:resource, :token)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE m.token <= excluded.token RETURNING 1)
UPDATE target SET v = :v FROM accepted WHERE id = :id;
