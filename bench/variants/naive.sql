-- By hand: a table of marks, updated in a transaction with the write, on every write.
CREATE TABLE mark (resource text COLLATE "C" PRIMARY KEY, token bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO mark SELECT DISTINCT :'variant' || ':batch-' || batch, 5 FROM batches;
VACUUM ANALYZE mark;
-- each
BEGIN;
UPDATE mark SET token = :token WHERE resource = :resource AND token <= :token;
UPDATE target SET v = :v WHERE id = :id;
COMMIT;
