-- What the token of guarded_update() and guarded_delete() counts for, and what comes before it: the caller's privileges.
\set SHOW_CONTEXT never
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA test_scope;
SET search_path = test_scope;
CREATE VIEW marks AS SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'scope:%' ORDER BY resource;

-- A trigger of the target writes to a table of another resource: the token is none of that one.
CREATE TABLE audit (id integer GENERATED ALWAYS AS IDENTITY, what text);
SELECT lockfence.attach('audit', 'scope:audit');
CREATE TABLE entry (id integer GENERATED ALWAYS AS IDENTITY, src integer, what text);
SELECT lockfence.attach('entry', 'scope:entry-{src}', 'token');
CREATE TABLE src (id integer PRIMARY KEY, grp text, note text);
SELECT lockfence.attach('src', 'scope:src-{grp}', 'token');
INSERT INTO src VALUES (1, 'a', 'new', 10), (2, 'b', 'new', 10);
CREATE FUNCTION keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO test_scope.audit (what) VALUES (TG_OP);
	RETURN NULL;
END
$$;
CREATE FUNCTION keep_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO test_scope.entry (src, what) VALUES (old.id, TG_OP);
	RETURN coalesce(new, old);
END
$$;
CREATE TRIGGER keep AFTER UPDATE OR DELETE ON src FOR EACH ROW EXECUTE FUNCTION keep_audit();
-- ... where the key tells the resource, where it does not, and on the way out
SELECT lockfence.guarded_update('src', '{"id": 1, "grp": "a"}', '{"note": "set"}', 43);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('src', '{"id": 1}', '{"note": "set"}', 43);
SELECT lockfence.guarded_delete('src', '{"id": 1}', 43);
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER keep ON src;
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON src FOR EACH ROW EXECUTE FUNCTION keep_entry();
SELECT lockfence.guarded_update('src', '{"id": 1, "grp": "a"}', '{"note": "set"}', 43);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_delete('src', '{"id": 1}', 43);
SELECT * FROM marks;
-- ... what is presented for it is its own, and the call's is the target's
BEGIN;
SELECT lockfence.present('scope:entry-1', 5);
SELECT lockfence.guarded_update('src', '{"id": 1}', '{"note": "set"}', 43);
SELECT * FROM lockfence.presented() ORDER BY 1;
COMMIT;
SELECT * FROM marks;
-- ... and the ambient token is for all, as ever
BEGIN;
SELECT lockfence.present(44);
SELECT lockfence.guarded_update('src', '{"id": 1}', '{"note": "set"}', 44);
ROLLBACK;

-- A guarded write by a trigger of one has a token of its own.
DROP TRIGGER keep ON src;
CREATE FUNCTION write_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM lockfence.guarded_update('test_scope.entry', '{"src": 1}', '{"what": "inner"}', 6);
	RETURN new;
END
$$;
CREATE TRIGGER keep BEFORE UPDATE ON src FOR EACH ROW EXECUTE FUNCTION write_entry();
SELECT lockfence.guarded_update('src', '{"id": 1}', '{"note": "outer"}', 44);
SELECT * FROM marks;
SELECT id, src, what, token FROM entry;
DROP TRIGGER keep ON src;
-- ... and nothing is left of a call that failed
BEGIN;
SAVEPOINT s;
SELECT lockfence.guarded_update('src', '{"id": 1}', '{"id": 2}', 44);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
UPDATE src SET note = 'after';
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
DO $$
BEGIN
	BEGIN
		PERFORM lockfence.guarded_update('test_scope.src', '{"id": 1}', '{"id": 2}', 44);
	EXCEPTION WHEN unique_violation THEN
		UPDATE test_scope.src SET note = 'after';
	END;
END
$$;
\echo :LAST_ERROR_SQLSTATE

-- Rows of the target that triggers write: other resources, by keys that refer to the table itself.
CREATE TABLE node (id integer PRIMARY KEY, parent integer REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE, note text);
SELECT lockfence.attach('node', 'scope:node-{id}', 'token');
INSERT INTO node VALUES (1, NULL, 'new', 10), (2, 1, 'new', 10);
SELECT lockfence.guarded_delete('node', '{"id": 1}', 20);
\echo :LAST_ERROR_SQLSTATE
CREATE TABLE leaf (id integer PRIMARY KEY, parent integer REFERENCES leaf ON DELETE CASCADE, note text);
SELECT lockfence.attach('leaf');
INSERT INTO leaf VALUES (1, NULL, 'new', 10), (2, 1, 'new', 10);
SELECT lockfence.guarded_delete('leaf', '{"id": 1}', 20);
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present('scope:node-2', 10);
SELECT lockfence.guarded_delete('node', '{"id": 1}', 20);
SELECT * FROM marks WHERE resource LIKE 'scope:node%';
COMMIT;

-- Partitions and children are the target's.
CREATE TABLE part (id integer, place text, note text) PARTITION BY LIST (place);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF part FOR VALUES IN ('b');
SELECT lockfence.attach('part');
INSERT INTO part VALUES (1, 'a', 'new', 10), (2, 'b', 'new', 10);
SELECT lockfence.guarded_update('part', '{"note": "new"}', '{"note": "set"}', 11);
SELECT lockfence.guarded_update('part', '{"id": 1}', '{"place": "b"}', 12);
SELECT lockfence.guarded_update('part_b', '{"id": 1}', '{"note": "leaf"}', 13);
SELECT tableoid::regclass, * FROM part ORDER BY id;
CREATE TABLE base (id integer, note text);
CREATE TABLE child () INHERITS (base);
SELECT lockfence.attach('base');
INSERT INTO child VALUES (1, 'new', 10);
SELECT lockfence.guarded_update('base', '{"id": 1}', '{"note": "set"}', 11);

-- Rows of the target that are written on the way without a trigger: by a default, a constraint.
CREATE TABLE self (id integer PRIMARY KEY, grp text, note text);
SELECT lockfence.attach('self', 'scope:self-{grp}', 'token');
INSERT INTO self VALUES (1, 'a', 'new', 10), (2, 'b', 'new', 10);
CREATE FUNCTION write_other(note text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	UPDATE test_scope.self SET note = 'other' WHERE grp = 'b';
	RETURN note;
END
$$;
ALTER TABLE self ALTER note SET DEFAULT write_other('default');
SELECT lockfence.guarded_insert('self', '{"id": 3, "grp": "a"}', 43);
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE self ALTER note DROP DEFAULT, ADD CONSTRAINT other CHECK (write_other(note) IS NOT NULL) NOT VALID;
SELECT lockfence.guarded_update('self', '{"id": 1}', '{"note": "checked"}', 43);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM marks WHERE resource LIKE 'scope:self%';
-- ... under a token of their own they are
BEGIN;
SELECT lockfence.present('scope:self-b', 10);
ALTER TABLE self DROP CONSTRAINT other, ALTER note SET DEFAULT write_other('default');
SELECT lockfence.guarded_insert('self', '{"id": 3, "grp": "a"}', 43);
SELECT * FROM marks WHERE resource LIKE 'scope:self%';
SELECT * FROM self ORDER BY id;
ROLLBACK;

-- A rule may come before the write.
ALTER TABLE self DROP CONSTRAINT other;
CREATE RULE keep AS ON UPDATE TO self DO ALSO INSERT INTO entry (src, what) VALUES (old.id, 'rule');
BEGIN;
SELECT lockfence.present('scope:entry-1', 6);
SELECT lockfence.guarded_update('self', '{"id": 1}', '{"note": "ruled"}', 43);
SELECT * FROM self WHERE id = 1;
ROLLBACK;

-- One report for a refused call on an advisory fence, of whatever kind, and no mark moves.
CREATE TABLE tried (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('tried', 'scope:tried', 'token', enforcement => 'advisory');
INSERT INTO tried SELECT n, 'new', 10 FROM generate_series(1, 3) n;
SET client_min_messages = log;
SELECT lockfence.guarded_update('tried', '{"note": "new"}', '{"note": "stale"}', 9);
BEGIN;
SELECT lockfence.present(12);
SELECT lockfence.guarded_update('tried', '{"note": "stale"}', '{"note": "conflict"}', 13);
ROLLBACK;
SET client_min_messages = warning;
SELECT * FROM tried ORDER BY id;
SELECT * FROM marks WHERE resource = 'scope:tried';

-- Privileges: what the executor would ask for comes first (see also the isolation spec guarded-privileges).
CREATE FUNCTION ask(resource text, token lockfence.fence_token) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING 'validator asked';
	RETURN true;
END
$$;
CREATE TABLE closed (id integer PRIMARY KEY, secret text, note text);
SELECT lockfence.attach('closed', 'scope:closed-{id}', 'token', validator => 'ask(text, lockfence.fence_token)');
INSERT INTO closed VALUES (1, 'x', 'new', 10);
CREATE ROLE regress_lf_caller;
GRANT USAGE ON SCHEMA lockfence, test_scope TO regress_lf_caller;
GRANT EXECUTE ON FUNCTION lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token),
	lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token) TO regress_lf_caller;
SET ROLE regress_lf_caller;
-- ... of any kind
SELECT lockfence.guarded_update('closed', '{"id": 1}', '{"note": "x"}', 5);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('closed', '{"id": 1}', '{"note": "x"}', 11);
SELECT lockfence.guarded_delete('closed', '{"id": 1}', 11);
\echo :LAST_ERROR_SQLSTATE
-- ... of the columns that are changed
RESET ROLE;
GRANT UPDATE (note), SELECT (id) ON closed TO regress_lf_caller;
SET ROLE regress_lf_caller;
SELECT lockfence.guarded_update('closed', '{"id": 1}', '{"note": "x", "secret": "y"}', 11);
SELECT lockfence.guarded_update('closed', '{"id": 1}', '{"token": 11}', 11);
-- ... of those that the key names
SELECT lockfence.guarded_update('closed', '{"id": 1, "secret": "x"}', '{"note": "x"}', 11);
SELECT lockfence.guarded_update('closed', '{"secret": "x"}', '{"note": "x"}', 11);
-- ... to delete
SELECT lockfence.guarded_delete('closed', '{"id": 1}', 11);
-- ... and what is wrong with the statement otherwise shows before the validator is asked, too
RESET ROLE;
ALTER TABLE closed ADD twice integer GENERATED ALWAYS AS (id * 2) STORED;
SELECT lockfence.guarded_update('closed', '{"id": 1}', '{"twice": 3}', 11);
SET ROLE regress_lf_caller;
-- ... and then it goes on
SELECT lockfence.guarded_update('closed', '{"id": 1}', '{"note": "set"}', 11);
RESET ROLE;
GRANT DELETE ON closed TO regress_lf_caller;
SET ROLE regress_lf_caller;
SELECT lockfence.guarded_delete('closed', '{"id": 1, "secret": "x"}', 12);
SELECT lockfence.guarded_delete('closed', '{"id": 1}', 12);
RESET ROLE;
SELECT * FROM marks WHERE resource LIKE 'scope:closed%';
DROP SCHEMA test_scope CASCADE;
DROP OWNED BY regress_lf_caller;
DROP ROLE regress_lf_caller;
