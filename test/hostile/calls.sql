-- What is called over those tables, by roles with more rights than their owner.  A call is numbered in a comment, by
-- which the server's log tells it, and is rolled back.
SET client_min_messages = warning;
GRANT USAGE ON SCHEMA hostile_test TO PUBLIC;

-- The text of an error; null: there was none.
CREATE FUNCTION hostile_test.attempt(statement text, path text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_catalog.set_config('search_path', path, true);
	EXECUTE statement;
	RAISE EXCEPTION USING ERRCODE = 'LFEND';
EXCEPTION
	WHEN SQLSTATE 'LFEND' THEN
		RETURN NULL;
	WHEN OTHERS THEN
		RETURN pg_catalog.concat(SQLSTATE, ': ', SQLERRM);
END
$$;

-- Controls: each trap is one, since a query springs it.  As a superuser; policies as a role that they apply to.
CREATE TABLE hostile_test.control (trap text, statement text, role name DEFAULT 'postgres', path text DEFAULT 'pg_catalog');
INSERT INTO hostile_test.control (trap, statement) VALUES
	('view', 'SELECT * FROM mal.view'),
	('guarded view', 'SELECT * FROM mal.guarded_view'),
	('cast of the token', 'SELECT tok::bigint FROM mal.composite'),
	('cast of a placeholder', 'SELECT id::text FROM mal.cast_key'),
	('cast of a placeholder', 'SELECT place::text FROM mal.cast_key'),
	('operator of a type', 'SELECT id OPERATOR(mal.=) id FROM mal.cast_key'),
	('domain', 'SELECT 1::mal.odd'),
	('domain', 'SELECT 1 FROM mal.literal_lock WHERE odds = ''{1}'''),
	('domain', 'SELECT 1 FROM mal.literal_lock WHERE span = ''[1,2)'''),
	('domain', 'SELECT 1 FROM mal.literal_lock WHERE pairs = ''{"(1,x)"}'''),
	('domain', 'SELECT 1 FROM mal.literal_lock WHERE hidden = ''{1}'''),
	('rule', 'UPDATE mal.ruled SET note = ''y'''),
	('check', 'UPDATE mal.computed SET note = ''y'''),
	('default', 'INSERT INTO mal.computed (id, fence) VALUES (2, 10)'),
	('generated column', 'UPDATE mal.computed SET id = 3'),
	('index expression', 'UPDATE mal.computed SET id = 3'),
	('index predicate', 'UPDATE mal.computed SET id = 3'),
	('trigger before_row', 'UPDATE mal.triggered SET note = ''y'''),
	('trigger before_statement', 'UPDATE mal.triggered SET note = ''y'''),
	('trigger after_statement', 'UPDATE mal.triggered SET note = ''y'''),
	('trigger deferred', 'UPDATE mal.triggered SET note = ''y''; SET CONSTRAINTS ALL IMMEDIATE'),
	('trigger ~~', 'UPDATE mal.triggered SET note = ''y'''),
	('trigger after_row', 'SET session_replication_role = replica; UPDATE mal.triggered SET note = ''y'''),
	('trigger ~lockfence_row', 'UPDATE mal.impostor SET note = ''y'''),
	('trigger ~lockfence_statement', 'UPDATE mal.impostor SET note = ''y'''),
	('trigger ~lockfence_truncate', 'TRUNCATE mal.impostor'),
	('validator', 'SET lockfence.bypass = off; UPDATE mal.validated SET fence = 20'),
	('partition key', 'INSERT INTO mal.parted VALUES (2, ''y'', 20)'),
	('check of a partition', 'UPDATE mal.parted_2 SET note = ''y''');
INSERT INTO hostile_test.control VALUES
	('policy', 'SELECT * FROM mal.policy', 'hostile_monitor', 'pg_catalog'),
	('policy of a child', 'SELECT * FROM mal.child', 'hostile_monitor', 'pg_catalog'),
	('operator in the path', 'SELECT ''a''::text = ''b''::text', 'postgres', 'mal, pg_catalog'),
	('operator in the path', 'SELECT ''pg_class''::regclass = ''pg_class''::regclass', 'postgres', 'mal'),
	('operator in the path', 'SELECT 1 FROM pg_class WHERE oid = ''pg_class''::regclass', 'postgres', 'mal'),
	('function in the path', 'SELECT replace(''a''::text, ''b'', ''c'')', 'postgres', 'mal, pg_catalog'),
	-- what is no hole: a write is the writer's, and so are the triggers that it fires, as without lockfence
	('trigger before_row', 'SET lockfence.bypass = off; SELECT lockfence.guarded_update(''mal.triggered'', ''{"id": 1}'', ''{"note": "y"}'', 20)', 'postgres', 'pg_catalog'),
	('trigger before_row', 'SET lockfence.bypass = off; SELECT lockfence.guarded_delete(''mal.triggered'', ''{"id": 1}'', 20)', 'postgres', 'pg_catalog'),
	('trigger before_row', 'SET lockfence.bypass = off; SELECT lockfence.guarded_insert(''mal.triggered'', ''{"id": 2, "note": "y"}'', 20)', 'postgres', 'pg_catalog'),
	('trigger before_row', 'SET lockfence.bypass = off; SELECT lockfence.present(''mal.row_fence'', ''{"id": 1}'', 20)', 'postgres', 'pg_catalog');

-- Before the owner alters anything of it.
SELECT lockfence.issue_from('mal.lock', 'lock:{id}/{place}/{odd}', '{id}{place}', '{note}', 'NEW.note IS NOT NULL'),
	lockfence.issue_from('mal.parted_lock', 'parted-lock:{id}', '{note}', '{note}');

CREATE VIEW hostile_test.relation AS
SELECT c.oid::regclass AS name, quote_literal(c.oid::regclass) AS literal, c.relkind IN ('r', 'p') AS is_table,
	CASE c.relname WHEN 'cast_key' THEN '{"id": "red"}' WHEN 'parted_2' THEN '{"id": 11}'
		WHEN 'child' THEN '{"id": 2}' ELSE '{"id": 1}' END AS key
FROM pg_class c
WHERE c.relnamespace = 'mal'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
	-- of many alike, the topmost
	AND (c.relname NOT LIKE ALL (ARRAY['many\_paths\_%', 'long\_line\_%']) OR c.relname IN ('many_paths_0_0', 'long_line_0'))
ORDER BY c.relname COLLATE "C";

CREATE TABLE hostile_test.call (statement text, path text, role name, id serial);
INSERT INTO hostile_test.call (statement, path, role)
SELECT s.statement, p.path, r.role
FROM (
	SELECT format(f.statement, c.literal, c.key, c.name) AS statement
	FROM hostile_test.relation c
		JOIN (VALUES
			(false, 'SELECT * FROM lockfence.verify(%1$s)'),
			(false, 'SELECT lockfence.reconcile(%1$s)'),
			(false, 'SELECT lockfence.attach(%1$s)'),
			(false, 'SELECT lockfence.attach(%1$s, ''x:{id}'', ''fence'')'),
			(false, 'SELECT lockfence.attach(%1$s, ''constant'')'),
			(false, 'SELECT lockfence.detach(%1$s)'),
			(false, 'SELECT lockfence.detach(%1$s), lockfence.attach(%1$s, ''x:{id}'', ''fence'', accept => ''presented'', enforcement => ''advisory'')'),
			(false, 'SELECT * FROM lockfence.drill(%1$s, ''%2$s'', ''{"note": "y"}'')'),
			(false, 'SELECT * FROM lockfence.drill(%1$s, ''%2$s'', ''%2$s'')'),
			(false, 'SELECT lockfence.raise_mark(%1$s, ''%2$s'', 50, ''test'')'),
			(false, 'SELECT lockfence.reset_mark(%1$s, ''%2$s'', 5, ''test'')'),
			(false, 'SELECT lockfence.is_current(%1$s, ''%2$s'', 50)'),
			-- equal, and stale: no UPDATE
			(false, 'SELECT lockfence.present(%1$s, ''%2$s'', 10)'),
			(false, 'SELECT lockfence.present(%1$s, ''%2$s'', 5)'),
			(false, 'SELECT lockfence.fence_ddl(''migrations''), lockfence.present(''migrations'', 5); DROP TABLE %3$s CASCADE'),
			(false, 'SELECT lockfence.issue_from(%1$s, ''x:{id}'', ''{note}'', ''{note}'', ''NEW.note IS NOT NULL'')'),
			(false, 'SELECT lockfence.issue_from(%1$s, ''x'', ''{note}''), lockfence.stop_issuing(%1$s)'),
			(false, 'SELECT lockfence.stop_issuing(%1$s)'),
			(false, 'SELECT lockfence.resource_of(%1$s, NULL)'),
			(true, 'SELECT lockfence.resource_of(%1$s, x.*) FROM ONLY %3$s x')
		) AS f (takes_table, statement) ON c.is_table OR NOT f.takes_table
	UNION ALL
	VALUES ('SELECT lockfence.issue_from(''mal.literal_lock'', ''x'', ''{note}'', held => ''NEW.odds = ''''{1}'''''')'),
		('SELECT lockfence.issue_from(''mal.literal_lock'', ''x'', ''{note}'', held => ''NEW.span = ''''[1,2)'''''')'),
		('SELECT lockfence.issue_from(''mal.literal_lock'', ''x'', ''{note}'', held => ''NEW.pairs = ''''{"(1,x)"}'''''')'),
		('SELECT lockfence.issue_from(''mal.literal_lock'', ''x'', ''{note}'', held => ''NEW.hidden = ''''{1}'''''')'),
		('SELECT * FROM lockfence.verify()'),
		('SELECT * FROM lockfence.fences'),
		('SELECT * FROM lockfence.issuers'),
		('SELECT * FROM lockfence.stats'),
		('SELECT * FROM lockfence.refusals'),
		('SELECT * FROM lockfence.offenders'),
		('SELECT * FROM lockfence.stats_limits()'),
		('SELECT * FROM lockfence.takeovers'),
		('SELECT * FROM lockfence.overlap'),
		('SELECT * FROM lockfence.prepared_holds'),
		('SELECT * FROM lockfence.holders(''x'')'),
		('SELECT lockfence.prune(''0'')'),
		('SELECT * FROM lockfence.presented()'),
		('SELECT lockfence.fence_ddl(''migrations''), lockfence.unfence_ddl()'),
		('SELECT lockfence.fence_ddl(''migrations''); SELECT * FROM lockfence.verify()'),
		('SELECT * FROM lockfence.retire()')
) AS s (statement)
	CROSS JOIN (VALUES ('pg_catalog'), ('mal, pg_catalog')) AS p (path)
	CROSS JOIN (VALUES ('postgres'), ('hostile_monitor')) AS r (role)
-- ... but for the caller's own query of the rows, which the policies apply to
WHERE s.statement NOT LIKE '% FROM ONLY %' OR r.role = 'postgres';

-- Queries find operators by the search path, which has pg_catalog first unless it says otherwise: there, an operator is
-- taken for another only if it fits the types better.
INSERT INTO hostile_test.call (statement, path, role)
SELECT m.query, 'mal', r.role FROM hostile_test.monitoring m CROSS JOIN (VALUES ('postgres'), ('hostile_monitor')) AS r (role);

-- The assertions find pgTAP and each other by it as well, which is then a tester's to keep clean.
INSERT INTO hostile_test.call (statement, path, role)
SELECT format(f.statement, quote_literal(c.name::text), c.key), 'tap', 'postgres'
FROM hostile_test.relation c
	CROSS JOIN (VALUES
		('SELECT plan(13), has_fence(%1$s), hasnt_fence(%1$s), fence_is(%1$s, ''x''), fence_settings_are(%1$s, ''{"kind": "row"}''),
			fences_are(''mal'', ''{x}''), fence_is_intact(%1$s), fences_are_intact(), lock_table_issues(%1$s), mark_is(''x'', 1), mark_cmp_ok(''x'', ''='', 1)'),
		('SELECT plan(1), survives_zombie(%1$s, ''%2$s'', ''{"note": "y"}'')')
	) AS f (statement)
WHERE EXISTS (SELECT FROM pg_extension WHERE extname = 'lockfence_pgtap');
GRANT SELECT ON hostile_test.call TO PUBLIC;
