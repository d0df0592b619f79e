-- ---------------------------------------------------------------- DDL

CREATE FUNCTION lockfence.guard_ddl() RETURNS event_trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_guard_ddl';
COMMENT ON FUNCTION lockfence.guard_ddl() IS
'event trigger: refuses with LF009 what others would put on the tables of marks (triggers, rules, policies, indexes, constraints, columns, inheritance), and makes commands that drop the extension wait for the transactions that hold a resource';
REVOKE ALL ON FUNCTION lockfence.guard_ddl() FROM PUBLIC;

CREATE FUNCTION lockfence._foreign_things()
RETURNS TABLE (target regclass, kind text, name text, is_harmless boolean)
LANGUAGE c VOLATILE ROWS 1
AS 'MODULE_PATHNAME', 'lockfence_foreign_things';
COMMENT ON FUNCTION lockfence._foreign_things() IS
'what is on the tables that the fence writes to and does not belong to the extension; is_harmless: the fence still writes to them';

-- Scripts of the extension itself may do what they do.
CREATE EVENT TRIGGER lockfence_before_ddl ON ddl_command_start
WHEN TAG IN ('CREATE TRIGGER', 'CREATE RULE', 'CREATE POLICY', 'CREATE INDEX', 'CREATE SCHEMA', 'CREATE TABLE',
	'ALTER TABLE', 'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'DROP EXTENSION', 'DROP OWNED', 'DROP SCHEMA')
EXECUTE FUNCTION lockfence.guard_ddl();
CREATE EVENT TRIGGER lockfence_after_ddl ON ddl_command_end
WHEN TAG IN ('CREATE TRIGGER', 'CREATE RULE', 'CREATE POLICY', 'CREATE INDEX', 'CREATE SCHEMA', 'CREATE TABLE',
	'ALTER TABLE', 'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE')
EXECUTE FUNCTION lockfence.guard_ddl();
ALTER EVENT TRIGGER lockfence_before_ddl ENABLE ALWAYS;
ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER lockfence_before_ddl IS
'keeps the tables of marks as lockfence made them, together with lockfence_after_ddl';
COMMENT ON EVENT TRIGGER lockfence_after_ddl IS
'keeps the tables of marks as lockfence made them; a superuser can disable it to alter them';
