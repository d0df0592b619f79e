-- ---------------------------------------------------------------- statistics

CREATE FUNCTION lockfence._refusals(
	OUT number bigint, OUT at timestamp with time zone, OUT database oid, OUT relid oid,
	OUT code text, OUT advisory boolean, OUT resource text, OUT token bigint, OUT mark bigint,
	OUT role oid, OUT application_name text, OUT client_addr text, OUT pid integer)
RETURNS SETOF record
LANGUAGE c VOLATILE ROWS 100
AS 'MODULE_PATHNAME', 'lockfence_refusal_rows';
COMMENT ON FUNCTION lockfence._refusals() IS
'the last refusals of every database; no rows without shared memory';

CREATE FUNCTION lockfence.stats_info(
	OUT available boolean, OUT max_tables bigint, OUT tables bigint, OUT evicted bigint,
	OUT max_refusals bigint, OUT refusals bigint, OUT overwritten bigint,
	OUT stats_reset timestamp with time zone)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_stats_info';
COMMENT ON FUNCTION lockfence.stats_info() IS
'whether there is shared memory for statistics; how many tables can have counters, how many have them and how many lost them to others; how many refusals are kept, were recorded and were overwritten; and the time of the last reset';

CREATE FUNCTION lockfence.stats_reset()
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_stats_reset';
COMMENT ON FUNCTION lockfence.stats_reset() IS
'sets every counter of every database to 0 and deletes the last refusals and takeovers';

CREATE VIEW lockfence.refusals AS
SELECT r.number, r.at, d.datname AS database,
	CASE WHEN d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
		THEN nullif(r.relid, 0)::pg_catalog.regclass END AS target,
	r.code, r.advisory, r.resource, r.token, r.mark, a.rolname AS role, r.application_name,
	r.client_addr, r.pid
FROM lockfence._refusals() r
	LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) r.database
	LEFT JOIN pg_catalog.pg_roles a ON a.oid OPERATOR(pg_catalog.=) r.role
ORDER BY r.number DESC;
COMMENT ON VIEW lockfence.refusals IS
'the last refusals of all databases, newest first: when, where, for which resource, the token presented, the mark it was compared with, and the session';

REVOKE ALL ON FUNCTION lockfence._refusals(), lockfence.stats_reset() FROM PUBLIC;
REVOKE ALL ON lockfence.refusals FROM PUBLIC;
GRANT SELECT ON lockfence.refusals TO pg_monitor;
