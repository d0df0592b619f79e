-- By hand: a table of counters, of which each gives the next token.
CREATE TABLE counter (resource text COLLATE "C" PRIMARY KEY, token bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO counter SELECT DISTINCT :'variant' || ':batch-' || batch, 5 FROM batches;
VACUUM ANALYZE counter;
-- each
INSERT INTO counter AS c VALUES (:resource, 1) ON CONFLICT (resource) DO UPDATE SET token = c.token + 1 RETURNING token;
