-- A batch is paid out in instalments; how many were paid is kept in its row.
CREATE TABLE batch (
	batch_id bigint PRIMARY KEY,
	instalments integer NOT NULL,
	paid integer NOT NULL DEFAULT 0,
	state text NOT NULL DEFAULT 'paying' CHECK (state IN ('paying', 'settled'))
);
INSERT INTO batch VALUES (9921, 3);
