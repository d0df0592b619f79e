-- What the role that creates the extension, its database and its session have as defaults does not reach into it:
-- others get no privilege, PUBLIC loses none, and the marks are stored as they are to be.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
\set privileges 'SELECT concat_ws('' '', o.kind, o.name, CASE a.grantee WHEN 0 THEN ''PUBLIC'' ELSE a.grantee::regrole::text END, a.privilege_type, a.is_grantable) FROM lockfence._own_objects() o CROSS JOIN LATERAL aclexplode(o.acl) AS a WHERE a.grantee <> o.owner UNION ALL SELECT concat_ws('' '', nspname, a.grantee::regrole, a.privilege_type) FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) AS a WHERE n.nspname = ''lockfence'' AND a.grantee <> n.nspowner'
SELECT current_database() AS home \gset
CREATE ROLE regress_lf_stranger;
CREATE DATABASE regress_lf_defaults TEMPLATE template0;

SELECT string_agg(line, '#') AS meant FROM (:privileges) AS p (line) \gset
-- without PUBLIC's, which are many, and what they may do to tables
SELECT line FROM (:privileges) AS p (line)
WHERE line !~ '^(FUNCTION|TYPE) .* PUBLIC ' ORDER BY line COLLATE "C";
SELECT count(*) > 25, bool_or(p.proname = '_reset_mark'), bool_or(p.proname = 'merge_state'), bool_or(p.proname = 'present') FROM pg_proc p
WHERE p.pronamespace = 'lockfence'::regnamespace AND NOT has_function_privilege('regress_lf_stranger', p.oid, 'EXECUTE');

\c regress_lf_defaults
SET client_min_messages = warning;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_lf_stranger, pg_monitor, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO regress_lf_stranger WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_lf_stranger, pg_monitor;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO regress_lf_stranger;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_lf_stranger, PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM PUBLIC;
CREATE ACCESS METHOD heap_too TYPE TABLE HANDLER heap_tableam_handler;
CREATE FUNCTION public.trap(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
CREATE OPERATOR public.<> (FUNCTION = public.trap, LEFTARG = int, RIGHTARG = int);
SET default_table_access_method = heap_too;
SET default_tablespace = pg_global;
SET search_path = public, pg_catalog;
CREATE EXTENSION lockfence;
SHOW default_table_access_method;
SHOW default_tablespace;
SELECT line FROM (:privileges) AS p (line) EXCEPT SELECT unnest(string_to_array(:'meant', '#'));
SELECT unnest(string_to_array(:'meant', '#')) EXCEPT (:privileges);
SELECT DISTINCT a.amname, c.reltablespace FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE c.relnamespace = 'lockfence'::regnamespace AND c.relkind = 'r';
SELECT code FROM lockfence.verify() WHERE severity <> 'info';
SET ROLE regress_lf_stranger;
SELECT lockfence._reset_mark('r', 1);
SELECT lockfence._set_state('epoch', 1);
INSERT INTO lockfence.state VALUES ('epoch', 1);
SELECT count(*) FROM lockfence.mark;
CREATE TABLE lockfence.planted ();
RESET ROLE;
-- nor does a schema that is there already
DROP EXTENSION lockfence;
DROP SCHEMA IF EXISTS lockfence;
CREATE SCHEMA lockfence;
GRANT ALL ON SCHEMA lockfence TO regress_lf_stranger WITH GRANT OPTION;
CREATE EXTENSION lockfence;
SELECT line FROM (:privileges) AS p (line) EXCEPT SELECT unnest(string_to_array(:'meant', '#'));

-- verify(): what has been granted since, beyond what the documentation says
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lockfence TO regress_lf_stranger;
SELECT severity, code, regexp_replace(problem, 'lockfence.*', '...'), regexp_replace(remedy, 'lockfence.* FROM', '... FROM'), advice,
	remedy ~ 'lockfence._reset_mark\(text,lockfence.fence_token\)' AS names_it
FROM lockfence.verify() WHERE severity <> 'info';
DO $$
BEGIN
	EXECUTE (SELECT remedy FROM lockfence.verify() WHERE remedy IS NOT NULL);
END
$$;
SELECT code FROM lockfence.verify() WHERE severity <> 'info';
-- what is left is what can be granted
SELECT string_agg(DISTINCT p.proname::text, ' ' ORDER BY p.proname::text) FROM pg_proc p
WHERE p.pronamespace = 'lockfence'::regnamespace AND has_function_privilege('regress_lf_stranger', p.oid, 'EXECUTE')
	AND NOT has_function_privilege('pg_monitor', p.oid, 'EXECUTE');
GRANT ALL ON SEQUENCE lockfence.admin_log_id_seq TO regress_lf_stranger;
GRANT INSERT, TRIGGER ON lockfence.fences TO regress_lf_stranger;
GRANT SELECT ON lockfence.refusals TO PUBLIC;
GRANT SELECT (token) ON lockfence.mark TO PUBLIC;
GRANT SELECT ON lockfence.mark TO regress_lf_stranger;
SELECT target, severity, code, problem, remedy, advice FROM lockfence.verify() WHERE severity <> 'info';
SELECT remedy FROM lockfence.verify() WHERE remedy IS NOT NULL \gexec
SELECT target, code FROM lockfence.verify() WHERE severity <> 'info';
BEGIN;
UPDATE pg_class SET relam = (SELECT oid FROM pg_am WHERE amname = 'heap_too') WHERE oid = 'lockfence.state'::regclass;
SELECT target, severity, code, problem, remedy, advice FROM lockfence.verify() WHERE severity = 'error';
ROLLBACK;

\c :home
DROP DATABASE regress_lf_defaults;
DROP ROLE regress_lf_stranger;
