-- ---------------------------------------------------------------- counters

CREATE FUNCTION lockfence._counters()
RETURNS SETOF record
LANGUAGE c VOLATILE ROWS 100
AS 'MODULE_PATHNAME', 'lockfence_counters';
COMMENT ON FUNCTION lockfence._counters() IS
'the counters of every table of every database that has any, as far as the column definition list names them, beside database, relid, log_suppressed and last_used; no rows without shared memory';

CREATE VIEW lockfence.stats AS
SELECT c.oid::pg_catalog.regclass AS target,
	s.accepted, s.advanced, s.stale, s.missing, s.invalid, s.unknown_epoch, s.sealed, s.conflicting,
	s.unvalidated, s.unfenceable, s.unprotected, s.advisory, s.advisory_stale, s.bypassed, s.preempted,
	s.validator_calls, s.validator_failures, s.unavailable, s.validator_open,
	s.log_suppressed, s.last_used, s.issued, s.declined, s.unchecked, s.expired
FROM lockfence._counters() AS s (
		database pg_catalog.oid, relid pg_catalog.oid, accepted bigint, advanced bigint, stale bigint, missing bigint, invalid bigint,
		unknown_epoch bigint, sealed bigint, conflicting bigint, unvalidated bigint, unfenceable bigint,
		unprotected bigint, advisory bigint, advisory_stale bigint, bypassed bigint, preempted bigint,
		validator_calls bigint, validator_failures bigint, unavailable bigint, validator_open bigint, issued bigint, declined bigint, unchecked bigint, expired bigint,
		log_suppressed bigint, last_used timestamp with time zone)
	JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.database
	LEFT JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) s.relid
WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
	AND (s.relid OPERATOR(pg_catalog.=) 0 OR c.oid IS NOT NULL);
COMMENT ON VIEW lockfence.stats IS
'what the fences of this database have decided, by table; a null target counts present(), issue() and acquire(). Survives a rollback, but not a restart';
GRANT SELECT ON lockfence.stats TO PUBLIC;
