\echo Use "ALTER EXTENSION lockfence UPDATE TO '1.1'" to load this file. \quit

-- ---------------------------------------------------------------- statistics

DROP VIEW lockfence.stats;
DROP FUNCTION lockfence._stats();

CREATE FUNCTION lockfence._stats(
	OUT database oid, OUT relid oid, OUT accepted bigint, OUT advanced bigint, OUT stale bigint,
	OUT missing bigint, OUT invalid bigint, OUT unknown_epoch bigint, OUT conflicting bigint,
	OUT unvalidated bigint, OUT unfenceable bigint, OUT unprotected bigint, OUT advisory bigint,
	OUT advisory_stale bigint, OUT bypassed bigint, OUT preempted bigint,
	OUT validator_calls bigint, OUT validator_failures bigint,
	OUT unavailable bigint, OUT validator_open bigint,
	OUT log_suppressed bigint, OUT last_used timestamp with time zone)
RETURNS SETOF record
LANGUAGE c VOLATILE ROWS 100
AS 'MODULE_PATHNAME', 'lockfence_stats_rows_1_1';
COMMENT ON FUNCTION lockfence._stats() IS
'the counters of every table of every database that has any; no rows without shared memory';

CREATE VIEW lockfence.stats AS
SELECT c.oid::pg_catalog.regclass AS target,
	s.accepted, s.advanced, s.stale, s.missing, s.invalid, s.unknown_epoch, s.conflicting,
	s.unvalidated, s.unfenceable, s.unprotected, s.advisory, s.advisory_stale, s.bypassed, s.preempted,
	s.validator_calls, s.validator_failures, s.unavailable, s.validator_open,
	s.log_suppressed, s.last_used
FROM lockfence._stats() s
	JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.database
	LEFT JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) s.relid
WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
	AND (s.relid OPERATOR(pg_catalog.=) 0 OR c.oid IS NOT NULL);
COMMENT ON VIEW lockfence.stats IS
'what the fences of this database have decided, by table; a null target counts present(). Survives rollback, not a restart';

GRANT SELECT ON lockfence.stats TO PUBLIC;
