-- ---------------------------------------------------------------- takeovers

CREATE FUNCTION lockfence._takeovers(
	OUT number bigint, OUT at timestamp with time zone, OUT database oid, OUT relid oid, OUT resource text,
	OUT before bigint, OUT token bigint, OUT way text, OUT prepared boolean, OUT left_out bigint,
	OUT role oid, OUT application_name text, OUT client_addr text, OUT pid integer)
RETURNS SETOF record
LANGUAGE c VOLATILE ROWS 100
AS 'MODULE_PATHNAME', 'lockfence_takeover_rows';
COMMENT ON FUNCTION lockfence._takeovers() IS
'the last changes of marks of every database; no rows without shared memory';

CREATE VIEW lockfence.takeovers AS
SELECT t.number, t.at, d.datname AS database,
	CASE WHEN d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
		THEN nullif(t.relid, 0)::pg_catalog.regclass END AS target,
	t.resource, t.before, t.token, t.way, t.prepared, t.left_out, a.rolname AS role, t.application_name,
	t.client_addr, t.pid
FROM lockfence._takeovers() t
	LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) t.database
	LEFT JOIN pg_catalog.pg_roles a ON a.oid OPERATOR(pg_catalog.=) t.role
ORDER BY t.number DESC;
COMMENT ON VIEW lockfence.takeovers IS
'the last changes of marks in all databases, newest first: when they were committed, where, of which resource, the mark before (null: none) and after, by which way, how many more the transaction made that are not kept, and the session';

REVOKE ALL ON FUNCTION lockfence._takeovers() FROM PUBLIC;
REVOKE ALL ON lockfence.takeovers FROM PUBLIC;
GRANT SELECT ON lockfence.takeovers TO pg_monitor;
