-- One decision, whatever the way in: each way of a write, with each kind of token, on each kind of fence.  Ways that
-- come to the same stand in one line; one that does not, on some kind of fence, stands in two.
\set SHOW_CONTEXT never
SET client_min_messages = error;
-- a database of its own: the epoch, the minimum and the gate are of the database
\set home :DBNAME
CREATE DATABASE regress_lf_paths;
\c regress_lf_paths
SET client_min_messages = error;
CREATE EXTENSION lockfence;

CREATE TABLE tried (target regclass PRIMARY KEY, kind text, enforcement text, resource text);
CREATE PROCEDURE make_table(kind text, enforcement text, template text) LANGUAGE plpgsql AS $$
DECLARE
	name text := kind || '_' || enforcement;
BEGIN
	EXECUTE format('CREATE TABLE %I (id integer, grp text, place text, note text, PRIMARY KEY (id, place)) PARTITION BY LIST (place)', name);
	EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES IN (''a'')', name || '_a', name);
	EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES IN (''b'')', name || '_b', name);
	EXECUTE format('INSERT INTO %I VALUES (1, ''g'', ''a'', ''before'')', name);
	PERFORM lockfence.attach(name, template, CASE WHEN kind <> 'statement' THEN 'fence' END, enforcement => enforcement);
	IF kind = 'row' THEN
		SET LOCAL lockfence.bypass = on;
		EXECUTE format('UPDATE %I SET fence = 10', name);
		SET LOCAL lockfence.bypass = off;
	ELSE
		PERFORM lockfence.present(replace(template, '{grp}', 'g'), 10);
	END IF;
	INSERT INTO tried VALUES (name, kind, enforcement, replace(template, '{grp}', 'g'));
END
$$;
CALL make_table('row', 'fenced', NULL);
CALL make_table('row', 'advisory', NULL);
CALL make_table('template', 'fenced', 'paths:fenced-{grp}');
CALL make_table('template', 'advisory', 'paths:advisory-{grp}');
CALL make_table('constant', 'fenced', 'paths:fenced');
CALL make_table('constant', 'advisory', 'paths:advisory');
CALL make_table('statement', 'fenced', 'paths:statement');
CALL make_table('statement', 'advisory', 'paths:tried');

-- What the token is, and what was done before: the mark is 10.
CREATE TABLE scenario (no integer, name text, token bigint, setup text);
INSERT INTO scenario VALUES
	(1, 'stale', 9, NULL), (2, 'equal', 10, NULL), (3, 'higher', 11, NULL), (4, 'missing', NULL, NULL), (5, 'invalid', -1, NULL),
	(6, 'old epoch', 11, 'SELECT lockfence.set_epoch(1, ''test'')'),
	(7, 'unknown epoch', lockfence.make_token(2, 1), 'SELECT lockfence.set_epoch(1, ''test'')'),
	(8, 'below minimum', 11, 'INSERT INTO lockfence.state (name, value) VALUES (''minimum'', 20)'),
	(9, 'sealed', 11, 'UPDATE lockfence.state SET value = value + 1000 WHERE name LIKE ''timeline:%'''),
	(10, 'conflict', 11, 'SELECT lockfence.present(12)');

-- The ways: {set} sets the token column, where there is a token.
CREATE TABLE way (name text, kinds text, presented text, statement text);
INSERT INTO way VALUES
	('insert', 'template constant', NULL, 'INSERT INTO {table} (id, grp, place, fence) VALUES (2, ''g'', ''a'', {token})'),
	('upsert', 'template constant row', NULL, 'INSERT INTO {table} (id, grp, place, fence) VALUES (1, ''g'', ''a'', {token})
		ON CONFLICT (id, place) DO UPDATE SET note = ''x''{set}'),
	('update', 'template constant row', NULL, 'UPDATE {table} SET note = ''x''{set}'),
	('update leaf', 'template constant row', NULL, 'UPDATE {table}_a SET note = ''x''{set}'),
	('move', 'template constant row', NULL, 'UPDATE {table} SET place = ''b''{set}'),
	('name', 'template', NULL, 'UPDATE {table} SET grp = ''h''{set}'),
	('insert, ambient', 'template constant statement', 'ambient', 'INSERT INTO {table} (id, grp, place) VALUES (2, ''g'', ''a'')'),
	('update, ambient', 'template constant statement row', 'ambient', 'UPDATE {table} SET note = ''x'''),
	('move, ambient', 'template constant statement row', 'ambient', 'UPDATE {table} SET place = ''b'''),
	('delete, ambient', 'template constant statement row', 'ambient', 'DELETE FROM {table}'),
	('update, by name', 'template constant statement', 'named', 'UPDATE {table} SET note = ''x'''),
	('move, by name', 'template constant statement', 'named', 'UPDATE {table} SET place = ''b'''),
	('delete, by name', 'template constant statement', 'named', 'DELETE FROM {table}'),
	('truncate, by name', 'statement', 'named', 'TRUNCATE {table}'),
	('truncate, ambient', 'statement', 'ambient', 'TRUNCATE {table}'),
	('guarded_update', 'template constant statement row', NULL, 'SELECT lockfence.guarded_update(''{table}'', ''{"id": 1, "grp": "g"}'', ''{"note": "x"}'', {token})'),
	('guarded_update, key apart', 'template', NULL, 'SELECT lockfence.guarded_update(''{table}'', ''{"id": 1}'', ''{"note": "x"}'', {token})'),
	('guarded_update, move', 'template constant statement row', NULL, 'SELECT lockfence.guarded_update(''{table}'', ''{"grp": "g"}'', ''{"place": "b"}'', {token})'),
	('guarded_delete', 'template constant statement row', NULL, 'SELECT lockfence.guarded_delete(''{table}'', ''{"grp": "g"}'', {token})'),
	('guarded_delete, key apart', 'template', NULL, 'SELECT lockfence.guarded_delete(''{table}'', ''{"id": 1}'', {token})');

-- Goes one way, tells what it came to, and takes all back.
CREATE FUNCTION go(t tried, s scenario, w way) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	statement text := replace(replace(replace(w.statement, '{table}', t.target::text), '{token}', coalesce(s.token::text, 'NULL')),
		'{set}', coalesce(', fence = ' || s.token, ''));
	marked bigint;
BEGIN
	IF s.setup IS NOT NULL THEN
		EXECUTE s.setup;
	END IF;
	IF w.presented = 'ambient' AND s.token IS NOT NULL THEN
		PERFORM lockfence.present(s.token);
	ELSIF w.presented = 'named' AND s.token IS NOT NULL THEN
		PERFORM lockfence.present(t.resource, s.token);
	END IF;
	EXECUTE statement;
	IF t.kind = 'row' THEN
		EXECUTE format('SELECT max(fence) FROM %s', t.target) INTO marked;
	ELSE
		SELECT token INTO marked FROM lockfence.mark WHERE resource = t.resource;
	END IF;
	RAISE EXCEPTION SQLSTATE 'ZZ999' USING MESSAGE = format('goes on, mark %s', coalesce(marked::text, 'gone with the row'));
EXCEPTION WHEN OTHERS THEN
	RETURN CASE sqlstate WHEN 'ZZ999' THEN sqlerrm ELSE sqlstate END;
END
$$;
\pset format unaligned
\pset fieldsep ' | '
SELECT enforcement, token, outcome, string_agg(DISTINCT name, '; ' ORDER BY name) AS ways
FROM (
	SELECT t.enforcement, s.no, s.name AS token, w.name COLLATE "C" AS name, go(t, s, w) AS outcome
	FROM tried t CROSS JOIN scenario s JOIN way w ON t.kind = ANY (string_to_array(w.kinds, ' '))
	WHERE s.name <> 'conflict' OR w.presented IS DISTINCT FROM 'ambient'
) tries
GROUP BY enforcement, no, token, outcome ORDER BY enforcement DESC, no, outcome COLLATE "C";
\pset format aligned

\c :home
SET client_min_messages = warning;
DROP DATABASE regress_lf_paths;
