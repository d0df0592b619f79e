CREATE FUNCTION lockfence._needs_restart()
RETURNS boolean
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_needs_restart';
COMMENT ON FUNCTION lockfence._needs_restart() IS
'whether the server''s shared memory belongs to another version of the library';

