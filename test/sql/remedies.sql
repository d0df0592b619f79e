-- Every remedy of verify() that can be had, run blindly by a superuser over tables, columns, triggers, resources,
-- functions and roles whose names break out of all that quotes badly: none widens a right, changes what was declared,
-- or lets a token pass that did not before.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SET search_path = pg_catalog;
CREATE SCHEMA U&"test_remedies\000A;--";
SET search_path = U&"test_remedies\000A;--", pg_catalog;

-- Names by short words, which stand in braces in the statements below.
CREATE TABLE word (word text PRIMARY KEY, name text);
INSERT INTO word VALUES
	('mal', 'regress_lf_mal'),
	('bad', E'regress_lf_bad\n", PUBLIC; ALTER ROLE regress_lf_mal SUPERUSER--'),
	('t', E't\n;ALTER ROLE regress_lf_mal SUPERUSER;COMMIT;--'),
	('r', E'r"; ALTER ROLE regress_lf_mal SUPERUSER; --'),
	('p', E'p''); ALTER ROLE regress_lf_mal SUPERUSER; --'),
	('p1', E'q$$; \\ */ /* \r\u2028\u202e'),
	('s', E's\\''"\u0085\n\\! id\n'),
	('s1', E'u\\''"%s%I%L {x}'),
	('new', E'n\n\\;ALTER ROLE regress_lf_mal SUPERUSER;--'),
	('k', E'k\n$$;--"'),
	('tok', E'fence''\n"\\'),
	('trg', E'a\n"ALTER ROLE regress_lf_mal SUPERUSER;--'),
	('later', E'~~~\n*/;--"'),
	('f', E'f\n''"(text);ALTER ROLE regress_lf_mal SUPERUSER;--'),
	('jobs', E'jobs''\n";COMMIT;ALTER ROLE regress_lf_mal SUPERUSER;--$$\\*/');
-- since 19 the name of a role may not have a newline
UPDATE word SET name = replace(name, E'\n', ' ') WHERE word.word = 'bad' AND current_setting('server_version_num')::int >= 190000;
CREATE FUNCTION put(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	w record;
BEGIN
	FOR w IN SELECT * FROM word LOOP
		statement := replace(statement, '{' || w.word || '}', quote_ident(w.name));
	END LOOP;
	RETURN statement;
END
$$;
CREATE FUNCTION w(word text) RETURNS text LANGUAGE sql AS 'SELECT name FROM word WHERE word.word = w.word';
CREATE FUNCTION q(word text) RETURNS regclass LANGUAGE sql AS 'SELECT quote_ident(w(word))::regclass';
CREATE PROCEDURE run(statement text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE put(statement); END $$;

CALL run('CREATE ROLE {mal}; CREATE ROLE {bad} LOGIN');
CALL run('CREATE TABLE {t} ({k} text PRIMARY KEY, note text); CREATE TABLE {r} ({k} text PRIMARY KEY, note text);
	CREATE TABLE {p} ({k} int, note text) PARTITION BY LIST ({k}); CREATE TABLE {p1} PARTITION OF {p} FOR VALUES IN (1);
	CREATE TABLE {s} ({k} int, note text) PARTITION BY LIST ({k}); CREATE TABLE {s1} PARTITION OF {s} FOR VALUES IN (1)');
SELECT lockfence.attach(q('t'), format('%s {%s}', w('jobs'), w('k')), w('tok')), lockfence.attach(q('r'), token_column => w('tok')),
	lockfence.attach(q('p'), format('p {%s} %s', w('k'), w('jobs'))), lockfence.attach(q('s'), w('jobs'));
CALL run($$INSERT INTO {t} VALUES (E'1\n;--', 'x', 50); INSERT INTO {r} VALUES ('1', 'x', 50)$$);
BEGIN;
SELECT lockfence.present(50);
CALL run('INSERT INTO {p} VALUES (1); INSERT INTO {s} VALUES (1)');
COMMIT;
CREATE TABLE canary AS SELECT 1 AS n;

-- What may not grow: who may do what.
CREATE VIEW right_of AS
SELECT format('%s %s: %s for %s, by %s', o.kind, o.name, a.privilege_type, a.grantee, a.is_grantable) AS line
FROM (
	SELECT 'relation', c.oid::regclass::text, coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner))
	FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'S') AND c.relnamespace >= 16384
	UNION ALL SELECT 'column', format('%s.%s', attrelid, attname), attacl FROM pg_attribute WHERE attacl IS NOT NULL
	UNION ALL SELECT 'function', p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)) FROM pg_proc p WHERE p.pronamespace >= 16384
	UNION ALL SELECT 'schema', nspname, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace
	UNION ALL SELECT 'database', datname, coalesce(datacl, acldefault('d', datdba)) FROM pg_database
	UNION ALL SELECT 'type', t.oid::regtype::text, coalesce(t.typacl, acldefault('T', t.typowner)) FROM pg_type t WHERE t.typnamespace >= 16384
) AS o (kind, name, acl) CROSS JOIN LATERAL aclexplode(o.acl) AS a
UNION ALL SELECT format('owner: %s %s %s', c.tableoid, c.oid, c.relowner) FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'S') AND c.relnamespace >= 16384
UNION ALL SELECT format('owner: %s %s %s %s', p.tableoid, p.oid, p.proowner, p.prosecdef) FROM pg_proc p WHERE p.pronamespace >= 16384
UNION ALL SELECT format('owner: %s %s %s', n.tableoid, n.oid, n.nspowner) FROM pg_namespace n
UNION ALL SELECT format('member: %s %s %s', roleid, member, admin_option) FROM pg_auth_members
UNION ALL SELECT format('role: %s', r) FROM pg_roles r
UNION ALL SELECT format('hidden: %s %s', c.oid, c.relrowsecurity) FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace >= 16384 AND NOT c.relrowsecurity;

-- What may not change: what an owner or an administrator has decided.
CREATE VIEW declared AS
SELECT format('fence: %s %s %s %s %s %s %s %s %s', f.target, f.resource, f.token_column, f.accept, f.enforcement, f.missing, f.repeat,
	f.validator, f.advisory_since) AS line FROM lockfence.fences f
UNION ALL SELECT format('column: %s %s %s %s %s %s %s %s', a.attrelid, a.attnum, a.attname, a.atttypid, a.attnotnull, a.attidentity, a.attgenerated,
	pg_get_expr(d.adbin, d.adrelid))
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname LIKE 'test@_remedies%' ESCAPE '@') AND NOT a.attisdropped AND a.attnum > 0
UNION ALL SELECT format('table: %s %s %s %s', c.oid, c.relname, c.relpersistence, c.reloptions) FROM pg_class c
WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname LIKE 'test@_remedies%' ESCAPE '@')
UNION ALL SELECT format('rule: %s %s', ev_class, rulename) FROM pg_rewrite
UNION ALL SELECT format('constraint: %s %s', conrelid, conname) FROM pg_constraint WHERE conrelid >= 16384 AND conrelid <> 'lockfence.mark'::regclass
UNION ALL SELECT format('trigger: %s %s %s', t.tgrelid, t.tgname, t.tgenabled) FROM pg_trigger t
	JOIN pg_proc p ON p.oid = t.tgfoid WHERE p.pronamespace <> 'lockfence'::regnamespace
UNION ALL SELECT format('function: %s %s %s', p.oid, p.proname, p.proconfig) FROM pg_proc p WHERE p.pronamespace >= 16384
UNION ALL SELECT format('setting: %s', s) FROM pg_db_role_setting s
UNION ALL SELECT format('row of state: %s %s', name, value) FROM lockfence.state WHERE name NOT LIKE 'timeline:%';

-- Ways in: each that is refused has to stay so.  One with a token that is right may pass again where a fault kept it
-- out, but not where the gate did.
CREATE TABLE attempt (n int GENERATED ALWAYS AS IDENTITY, statement text);
INSERT INTO attempt (statement)
SELECT w.prefix || s.statement
FROM (VALUES (''), ('SELECT lockfence.present(49);'), ('SELECT lockfence.present(60);'),
		('SET LOCAL session_replication_role = replica; SELECT lockfence.present(49);')) AS w (prefix),
	(VALUES ('UPDATE {t} SET note = NULL'), ('DELETE FROM {r}'), ('UPDATE {p} SET note = NULL'), ('UPDATE {s1} SET note = NULL'),
		('INSERT INTO {p1} VALUES (1)')) AS s (statement)
UNION ALL SELECT unnest(ARRAY['UPDATE {t} SET {tok} = 49', 'UPDATE {r} SET {tok} = 3', 'TRUNCATE {t}', 'TRUNCATE {r}', 'TRUNCATE {p1}',
	'UPDATE lockfence.mark SET token = 1', 'DELETE FROM lockfence.state']);
CREATE FUNCTION passes(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE put(statement);
	RAISE EXCEPTION USING ERRCODE = 'LFEND';
EXCEPTION
	WHEN SQLSTATE 'LFEND' THEN
		RETURN true;
	WHEN OTHERS THEN
		RETURN statement LIKE '%present(60)%' AND SQLSTATE <> 'LF005';
END
$$;

-- Makes a fault, runs what verify() gives, and compares; all of it is rolled back.
CREATE FUNCTION harm(fault text, OUT codes text, OUT mended text, OUT wrong text) LANGUAGE plpgsql AS $$
DECLARE
	rights text[];
	declarations text[];
	marks text[];
	passed int[];
	finding record;
BEGIN
	EXECUTE put(fault);
	rights := ARRAY(SELECT line FROM right_of);
	declarations := ARRAY(SELECT line FROM declared);
	marks := ARRAY(SELECT m.resource || ' ' || m.token FROM lockfence.mark m);
	passed := ARRAY(SELECT n FROM attempt WHERE passes(statement));
	FOR finding IN SELECT v.code, v.problem, v.remedy, v.advice FROM lockfence.verify() v LOOP
		CONTINUE WHEN finding.code IN ('statistics_unavailable', 'mark_unnamed', 'size_ignored');
		codes := concat_ws(' ', codes, CASE WHEN codes ~ ('\m' || finding.code || '\M') THEN NULL ELSE finding.code END);
		IF concat(finding.problem, finding.remedy, finding.advice) ~ '[[:cntrl:]\u2028-\u202e]' OR coalesce(finding.remedy, finding.advice) IS NULL THEN
			wrong := concat_ws(E'\n', wrong, format('not on one line, or neither remedy nor advice: %s', finding));
		END IF;
		IF finding.remedy IS NOT NULL THEN
			mended := concat_ws(' ', mended, CASE WHEN mended ~ ('\m' || finding.code || '\M') THEN NULL ELSE finding.code END);
			EXECUTE finding.remedy;
		END IF;
	END LOOP;
	SELECT concat_ws(E'\n', wrong,
		(SELECT string_agg('wider: ' || line, E'\n') FROM (SELECT line FROM right_of EXCEPT SELECT unnest(rights)) AS l),
		(SELECT string_agg('no longer declared: ' || line, E'\n') FROM (SELECT unnest(declarations) AS line EXCEPT SELECT line FROM declared) AS l),
		(SELECT string_agg('declared: ' || line, E'\n') FROM (SELECT line FROM declared EXCEPT SELECT unnest(declarations)) AS l
			-- a guard that was missing shows the fence again
			WHERE line !~ '^fence: ' OR mended !~ 'guard_missing|unfenced'),
		(SELECT string_agg('mark is gone or lower: ' || line, E'\n') FROM unnest(marks) AS line WHERE NOT EXISTS (
			SELECT FROM lockfence.mark m WHERE m.resource = regexp_replace(line, ' \d+$', '')
				AND m.token >= substring(line FROM '\d+$')::bigint)),
		(SELECT string_agg('passes now: ' || put(statement), E'\n') FROM attempt WHERE n <> ALL (passed) AND passes(statement)),
		CASE WHEN mended IS NOT NULL THEN (
			SELECT string_agg('is left: ' || v.code || ' ' || v.remedy, E'\n') FROM lockfence.verify() v WHERE v.remedy IS NOT NULL) END,
		(SELECT 'a name was run' FROM pg_roles WHERE rolname = 'regress_lf_mal' AND rolsuper),
		CASE WHEN NOT EXISTS (SELECT FROM canary) THEN 'something was run' END) INTO wrong;
	RAISE EXCEPTION USING ERRCODE = 'LFEND';
EXCEPTION
	WHEN SQLSTATE 'LFEND' THEN
		wrong := nullif(wrong, '');
	WHEN OTHERS THEN
		wrong := concat_ws(E'\n', wrong, format('%s: %s', SQLSTATE, SQLERRM));
END
$$;

CREATE TABLE fault (n int GENERATED ALWAYS AS IDENTITY, statement text);
INSERT INTO fault (statement) VALUES
	('SELECT'),
	-- guards
	('ALTER TABLE {t} DISABLE TRIGGER ALL; ALTER TABLE {p1} DISABLE TRIGGER ALL'),
	('ALTER TABLE {r} ENABLE TRIGGER ALL; ALTER TABLE {s1} ENABLE REPLICA TRIGGER "~lockfence_statement"'),
	('DROP TRIGGER "~lockfence_row" ON {t}'),
	('DROP TRIGGER "~lockfence_truncate" ON {r}'),
	('DROP TRIGGER "~lockfence_row" ON {p}'),
	('DROP TRIGGER "~lockfence_statement" ON {s}'),
	('DROP TRIGGER "~lockfence_row" ON {r}; DROP TRIGGER "~lockfence_truncate" ON {r}'),
	('CREATE TABLE {new} PARTITION OF {s} FOR VALUES IN (2)'),
	('CREATE TABLE {new} PARTITION OF {p} FOR VALUES IN (2)'),
	('CREATE TABLE {new} () INHERITS ({r})'),
	('ALTER TRIGGER "~lockfence_row" ON {t} RENAME TO {trg}'),
	('ALTER TRIGGER "~lockfence_row" ON {t} RENAME TO {later}'),
	($$UPDATE pg_trigger SET tgattr = '2' WHERE tgrelid = q('t') AND tgname = '~lockfence_row'$$),
	('CREATE TRIGGER {later} BEFORE UPDATE ON {p} FOR EACH ROW WHEN (false) EXECUTE FUNCTION lockfence.guard_row(''resource=x'')'),
	($$UPDATE pg_trigger SET tgnargs = 3, tgargs = tgargs || 'enforcement=advisory\000' WHERE tgrelid = q('t') AND tgname = '~lockfence_row'$$),
	($$UPDATE pg_trigger SET tgnargs = 3, tgargs = tgargs || 'enforcement=advisory\000' WHERE tgrelid = q('t') AND tgname = '~lockfence_row';
		DROP TRIGGER "~lockfence_truncate" ON {t}$$),
	($$UPDATE pg_trigger SET tgnargs = 1, tgargs = '\xff00' WHERE tgrelid = q('r'); ALTER TABLE {r} DISABLE TRIGGER ALL$$),
	('CREATE FUNCTION {f}() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN new; END''; DROP TRIGGER "~lockfence_row" ON {r};
		CREATE TRIGGER "~lockfence_row" BEFORE INSERT ON {r} FOR EACH ROW EXECUTE FUNCTION {f}(E''resource=r:{x\nALTER ROLE regress_lf_mal SUPERUSER;COMMIT;--}'');
		ALTER TABLE {r} DISABLE TRIGGER "~lockfence_row"'),
	-- around the guards
	('CREATE RULE {trg} AS ON DELETE TO {t} DO INSTEAD NOTHING'),
	('CREATE FUNCTION {f}() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN new; END'';
		CREATE TRIGGER {later} BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION {f}()'),
	('ALTER TABLE {r} DROP COLUMN {tok}'),
	('ALTER TABLE {t} RENAME COLUMN {tok} TO {trg}; ALTER TABLE {t} RENAME COLUMN {k} TO {later}'),
	('ALTER TABLE {t} ALTER COLUMN {tok} SET DEFAULT 9; ALTER TABLE {r} ALTER COLUMN {tok} TYPE numeric'),
	('SET LOCAL lockfence.bypass = on; UPDATE {r} SET {tok} = 50; RESET lockfence.bypass; ALTER TABLE {r} SET UNLOGGED'),
	($$SELECT lockfence.detach(q('r')), lockfence.attach(q('r'), w('jobs'), w('tok'), enforcement => 'advisory', missing => 'allow')$$),
	($$SELECT lockfence.detach(q('p')), lockfence.attach(q('p'), w('jobs'), enforcement => 'advisory');
		UPDATE pg_trigger SET tgargs = decode(regexp_replace(encode(tgargs, 'escape'), 'since=\d+', 'since=2020'), 'escape') WHERE tgrelid = q('p')$$),
	('CREATE FUNCTION {f}(text, bigint) RETURNS boolean LANGUAGE sql AS ''SELECT true'';
		SELECT lockfence.detach(q(''t'')), lockfence.attach(q(''t''), w(''jobs''), validator => (quote_ident(w(''f'')) || ''(text, bigint)'')::regprocedure);
		ALTER TABLE {t} OWNER TO {bad}; REVOKE ALL ON FUNCTION {f} FROM PUBLIC'),
	('CREATE FUNCTION {f}(text, bigint) RETURNS boolean LANGUAGE sql AS ''SELECT true'';
		SELECT lockfence.detach(q(''t'')), lockfence.attach(q(''t''), w(''jobs''), validator => (quote_ident(w(''f'')) || ''(text, bigint)'')::regprocedure);
		DROP FUNCTION {f}; CREATE FUNCTION {f}(text, bigint) RETURNS integer LANGUAGE sql AS ''SELECT 1'''),
	('CREATE FUNCTION {f}(text, bigint) RETURNS boolean LANGUAGE sql AS ''SELECT true'';
		SELECT lockfence.detach(q(''t'')), lockfence.attach(q(''t''), w(''jobs''), validator => (quote_ident(w(''f'')) || ''(text, bigint)'')::regprocedure); DROP FUNCTION {f}'),
	('GRANT {mal} TO {bad}; ALTER TABLE {r} OWNER TO {mal}; GRANT ALL ON {t} TO {bad} WITH GRANT OPTION'),
	('CREATE TABLE {new} ({k} text, {tok} bigint); INSERT INTO {new} VALUES (E''a\nb'', 70), (''c'', 71);
		SELECT lockfence.attach(q(''new''), format(''%s/{%s}'', w(''jobs''), w(''k'')), w(''tok''))'),
	-- the extension's own
	('ALTER EVENT TRIGGER lockfence_after_ddl DISABLE; ALTER TABLE lockfence.mark SET UNLOGGED; ALTER TABLE lockfence.state SET UNLOGGED;
		ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS'),
	('ALTER EVENT TRIGGER lockfence_after_ddl DISABLE; ALTER TABLE lockfence.mark ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; ALTER TABLE lockfence.admin_log ADD COLUMN {k} text'),
	('ALTER EVENT TRIGGER lockfence_after_ddl DISABLE; ALTER TABLE lockfence.mark DROP CONSTRAINT mark_pkey; DROP INDEX lockfence.mark_hash'),
	('UPDATE pg_index SET indisvalid = false WHERE indexrelid = ''lockfence.mark_pkey''::regclass'),
	('ALTER EVENT TRIGGER lockfence_after_ddl DISABLE; ALTER TABLE lockfence.mark DROP CONSTRAINT mark_pkey; ALTER TABLE lockfence.mark ADD CONSTRAINT {trg} PRIMARY KEY (resource, token)'),
	('ALTER EVENT TRIGGER lockfence_after_ddl DISABLE; ALTER TABLE lockfence.mark ADD COLUMN {k} text; CREATE INDEX {trg} ON lockfence.mark ((resource || ''x''));
		CREATE RULE {trg} AS ON INSERT TO lockfence.mark DO ALSO NOTHING; CREATE TRIGGER {later} AFTER UPDATE ON lockfence.mark FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()'),
	('ALTER EVENT TRIGGER lockfence_after_ddl DISABLE; ALTER TABLE lockfence.mark DISABLE TRIGGER ALL; DROP TRIGGER "~lockfence_state" ON lockfence.state; ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS'),
	('GRANT ALL ON ALL TABLES IN SCHEMA lockfence TO {bad}; GRANT ALL ON ALL SEQUENCES IN SCHEMA lockfence TO {bad}; GRANT UPDATE (value), SELECT (name) ON lockfence.state TO PUBLIC'),
	('GRANT ALL ON SCHEMA lockfence TO {bad}, PUBLIC; CREATE FUNCTION lockfence.{f}(text) RETURNS text LANGUAGE sql AS ''SELECT 1''; CREATE TABLE lockfence.{t} ({k} text)'),
	('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lockfence TO {bad}, PUBLIC'),
	('CREATE OR REPLACE FUNCTION lockfence.guard_truncate() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END'''),
	('ALTER FUNCTION lockfence.raise_mark(text, lockfence.fence_token, text) OWNER TO {bad}; ALTER SCHEMA lockfence OWNER TO {bad}; ALTER TABLE lockfence.state OWNER TO {bad}'),
	('ALTER DOMAIN lockfence.fence_token SET DEFAULT 99; ALTER DOMAIN lockfence.fence_token ADD CONSTRAINT {trg} CHECK (value > 9) NOT VALID'),
	('ALTER ROLE {bad} SET lockfence.bypass = on; ALTER ROLE {bad} SET session_replication_role = replica'),
	('CREATE FUNCTION {f}() RETURNS int LANGUAGE sql SET lockfence.bypass = on AS ''SELECT 1'''),
	($$SELECT set_config('lockfence.validator', w('f') || '(text, bigint)', true)$$),
	('DELETE FROM lockfence.state WHERE name LIKE ''timeline:%'''),
	('UPDATE lockfence.state SET value = value + 1000 WHERE name LIKE ''timeline:%''');
SELECT d.n, h.codes, h.mended, h.wrong FROM fault d CROSS JOIN LATERAL harm(d.statement) h ORDER BY d.n;

SET client_min_messages = error;
SELECT put('DROP ROLE {mal}, {bad}') AS drop_roles \gset
DROP SCHEMA U&"test_remedies\000A;--" CASCADE;
:drop_roles;
