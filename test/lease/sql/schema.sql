-- What the extension is made of: who may what, what is dumped, and how it is stored.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE ROLE regress_lf_stranger;
SELECT o.kind, o.name, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type
FROM lockfence._own_objects('{lockfence_lease}') o LEFT JOIN LATERAL aclexplode(o.acl) AS a ON a.grantee <> o.owner
ORDER BY o.kind, o.name COLLATE "C", a.grantee::text COLLATE "C";
SELECT c.oid::regclass, k FROM pg_extension e, unnest(extconfig, extcondition) c (oid, k) WHERE extname = 'lockfence_lease' ORDER BY 1::text;
SELECT c.oid::regclass, c.reloptions, c.relpersistence FROM pg_class c WHERE c.oid = 'lockfence.lease'::regclass;
-- Every function in SQL or plpgsql has a search path of its own, and everything has a comment.
SELECT p.oid::regprocedure FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	JOIN pg_language l ON l.oid = p.prolang JOIN pg_extension e ON e.oid = d.refobjid
WHERE e.extname = 'lockfence_lease' AND (obj_description(p.oid, 'pg_proc') IS NULL OR lanname IN ('sql', 'plpgsql')
	AND coalesce(array_to_string(proconfig, ' '), '') !~ '^search_path=pg_catalog, pg_temp( |$)');
-- verify() has nothing to say of it.
SELECT severity, code, problem FROM lockfence.verify() WHERE severity <> 'info' AND problem ~ 'lease';

-- Default privileges do not reach into it.
SELECT current_database() AS home, string_agg(concat_ws(' ', o.name, a.grantee, a.privilege_type), ' ' ORDER BY o.name, a.grantee, a.privilege_type) AS meant
FROM lockfence._own_objects('{lockfence_lease}') o CROSS JOIN LATERAL aclexplode(o.acl) AS a WHERE a.grantee <> o.owner \gset
CREATE DATABASE regress_lf_defaults TEMPLATE template0;
\c regress_lf_defaults
SET client_min_messages = warning;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_lf_stranger, pg_monitor, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_lf_stranger;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO regress_lf_stranger;
-- in one go with what it needs
CREATE EXTENSION lockfence_lease CASCADE;
SELECT string_agg(concat_ws(' ', o.name, a.grantee, a.privilege_type), ' ' ORDER BY o.name, a.grantee, a.privilege_type) = :'meant'
FROM lockfence._own_objects('{lockfence_lease}') o CROSS JOIN LATERAL aclexplode(o.acl) AS a WHERE a.grantee <> o.owner;
SELECT code FROM lockfence.verify() WHERE severity <> 'info';
\c :home
DROP DATABASE regress_lf_defaults;
DROP ROLE regress_lf_stranger;
