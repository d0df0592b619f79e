-- ---------------------------------------------------------------- leases

-- A row stays when its lease ends, as the mark does.  Half-full pages, and no index but the key: a renewal is then a
-- heap-only update.
CREATE TABLE lockfence.lease (
	token lockfence.fence_token NOT NULL,
	granted_at timestamp with time zone NOT NULL,
	expires_at timestamp with time zone,
	resource text COLLATE "C" NOT NULL,
	owner text COLLATE "C",
	CONSTRAINT lease_pkey PRIMARY KEY (resource)
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE lockfence.lease IS
'the last grant of each resource that is granted here: by acquire(), or by a lock table with issue_from(). Written by these functions alone; see leases';
COMMENT ON COLUMN lockfence.lease.token IS 'the token that was issued with it';
COMMENT ON COLUMN lockfence.lease.granted_at IS 'when it was granted, by the clock of the database';
COMMENT ON COLUMN lockfence.lease.expires_at IS 'until when the lease is alive unless it is renewed; null: a lock table says how long';
COMMENT ON COLUMN lockfence.lease.resource IS 'the name of the resource, as its lock is named';
COMMENT ON COLUMN lockfence.lease.owner IS 'who holds it, as the holder calls itself; null: it was released';

SELECT pg_catalog.pg_extension_config_dump('lockfence.lease', '');

REVOKE ALL ON lockfence.lease FROM PUBLIC;
-- Not to everybody, as the marks: who reads a token and presents it is no holder, and would not be found out.
GRANT SELECT ON lockfence.lease TO pg_monitor;

CREATE VIEW lockfence.leases AS
SELECT l.resource, l.owner, l.token, l.granted_at, l.expires_at,
	l.owner IS NOT NULL AND (l.expires_at IS NULL OR l.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()) AS alive
FROM lockfence.lease l;
COMMENT ON VIEW lockfence.leases IS
'the last grant of each resource that is granted here, and whether it is alive: neither released nor expired by the clock of the database';
REVOKE ALL ON lockfence.leases FROM PUBLIC;
GRANT SELECT ON lockfence.leases TO pg_monitor;
