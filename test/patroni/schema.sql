-- What the writers write, in a schema of its own for each stream of writes.
CREATE SCHEMA :"stream";
SET search_path = :"stream";
CREATE TABLE account (name text PRIMARY KEY, n bigint NOT NULL DEFAULT 0);
INSERT INTO account SELECT :'stream' || '/' || i FROM generate_series(1, 3) i;
SELECT lockfence.attach('account', '{name}', token_column => 'fence');

-- One row per accepted write.  The transaction that increments the account holds its row until commit, so n is the
-- order in which the writes were committed.
CREATE TABLE accepted (name text, n bigint, token bigint NOT NULL, id text NOT NULL UNIQUE, PRIMARY KEY (name, n));

-- The holders of each account present their token in another way: mixed, they would deadlock now and then, since
-- some lock the mark first and others the row.
CREATE FUNCTION write(name text, token bigint, id text) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	place bigint;
BEGIN
	IF name LIKE '%/1' THEN
		PERFORM lockfence.present(name, token);
	ELSIF name LIKE '%/2' THEN
		PERFORM lockfence.present(token);
	END IF;
	IF name LIKE '%/3' THEN
		UPDATE account a SET n = n + 1, fence = token WHERE a.name = write.name RETURNING n INTO place;
	ELSE
		UPDATE account a SET n = n + 1 WHERE a.name = write.name RETURNING n INTO place;
	END IF;
	INSERT INTO accepted VALUES (name, place, token, id);
END
$$;
