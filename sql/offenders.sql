-- ---------------------------------------------------------------- offenders

CREATE FUNCTION lockfence._offenders(
	OUT database oid, OUT relid oid, OUT code text, OUT role oid, OUT application_name text, OUT client_addr text,
	OUT pid integer, OUT refused bigint, OUT reported bigint, OUT first_at timestamp with time zone,
	OUT last_at timestamp with time zone, OUT resource text, OUT token bigint, OUT mark bigint)
RETURNS SETOF record
LANGUAGE c VOLATILE ROWS 100
AS 'MODULE_PATHNAME', 'lockfence_offender_rows';
COMMENT ON FUNCTION lockfence._offenders() IS
'refusals of every database by table, SQLSTATE, role, application_name and client_addr, with the last of each; no rows without shared memory';

CREATE FUNCTION lockfence.stats_limits(
	OUT kept text, OUT setting text, OUT capacity bigint, OUT used bigint, OUT evicted bigint)
RETURNS SETOF record
LANGUAGE c VOLATILE ROWS 5
AS 'MODULE_PATHNAME', 'lockfence_stats_limits';
COMMENT ON FUNCTION lockfence.stats_limits() IS
'of each statistic: the setting, how much can be kept, how much is kept, and how much gave way to what came later; no rows without shared memory';

CREATE VIEW lockfence.offenders AS
SELECT d.datname AS database,
	CASE WHEN d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
		THEN nullif(o.relid, 0)::pg_catalog.regclass END AS target,
	o.code, a.rolname AS role, o.application_name, o.client_addr, o.refused, o.reported, o.first_at, o.last_at,
	o.pid, o.resource, o.token, o.mark
FROM lockfence._offenders() o
	LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) o.database
	LEFT JOIN pg_catalog.pg_roles a ON a.oid OPERATOR(pg_catalog.=) o.role
ORDER BY o.last_at DESC;
COMMENT ON VIEW lockfence.offenders IS
'refusals of all databases by table, SQLSTATE, role, application_name and client_addr: how many were refused, how many an advisory fence only reported, the first and the last time, and of the last one the pid, the resource, the token and the mark';

REVOKE ALL ON FUNCTION lockfence._offenders() FROM PUBLIC;
REVOKE ALL ON lockfence.offenders FROM PUBLIC;
GRANT SELECT ON lockfence.offenders TO pg_monitor;
