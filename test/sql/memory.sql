-- What verify() says where the memory is another library's, which test/update/library makes for real.
SET client_min_messages = warning;
SELECT lockfence._needs_restart();
BEGIN;
CREATE OR REPLACE FUNCTION lockfence._needs_restart() RETURNS boolean LANGUAGE sql STABLE STRICT AS 'SELECT true';
SELECT severity, code, problem, remedy, advice FROM lockfence.verify() WHERE code IN ('needs_restart', 'statistics_unavailable');
ROLLBACK;
SELECT count(*) FROM lockfence.verify() WHERE code = 'needs_restart';
