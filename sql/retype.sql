-- ---------------------------------------------------------------- types of the columns that name resources

CREATE FUNCTION lockfence.watch_types() RETURNS event_trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_watch_types';
COMMENT ON FUNCTION lockfence.watch_types() IS
'event trigger: warns if ALTER TABLE or ALTER TYPE changes the text of values that name the resources of a fence';
REVOKE ALL ON FUNCTION lockfence.watch_types() FROM PUBLIC;

CREATE EVENT TRIGGER lockfence_watch_types ON ddl_command_start
WHEN TAG IN ('ALTER TABLE', 'ALTER TYPE')
EXECUTE FUNCTION lockfence.watch_types();
ALTER EVENT TRIGGER lockfence_watch_types ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER lockfence_watch_types IS
'warns if resources get other names, which have no marks; a superuser can disable it';
