-- ---------------------------------------------------------------- overlap

CREATE VIEW lockfence.overlap AS
SELECT c.oid::pg_catalog.regclass AS target,
	s.measured, s.unknown_overlap AS unknown,
	s.total_overlap::pg_catalog.float8 OPERATOR(pg_catalog./) 1000000 AS total_seconds,
	s.max_overlap::pg_catalog.float8 OPERATOR(pg_catalog./) 1000000 AS max_seconds,
	s.within_100ms, s.within_1s, s.within_10s, s.within_1min, s.within_10min, s.within_1h
FROM lockfence._counters() AS s (
		database pg_catalog.oid, relid pg_catalog.oid, measured bigint, unknown_overlap bigint, total_overlap bigint, max_overlap bigint,
		within_100ms bigint, within_1s bigint, within_10s bigint, within_1min bigint, within_10min bigint, within_1h bigint)
	JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.database
	LEFT JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) s.relid
WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
	AND (s.relid OPERATOR(pg_catalog.=) 0 OR c.oid IS NOT NULL);
COMMENT ON VIEW lockfence.overlap IS
'how late stale tokens came, refused or reported, by table; a null target is of present() and of leases. measured: with a known time since the mark rose above the token; unknown: without; total_seconds, max_seconds: of the measured times; within_...: those of at most so long. Survives a rollback, but not a restart';
GRANT SELECT ON lockfence.overlap TO PUBLIC;
