-- lockfence.session_grant: tokens that the client gives when it connects, as if each transaction had presented them first.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_session_grant;
SET search_path = test_session_grant;
CREATE FUNCTION try(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	code := 'none';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
		hint = PG_EXCEPTION_HINT;
END
$$;
CREATE TABLE item (id integer PRIMARY KEY, grp text NOT NULL, note text);
CREATE TABLE strict (id integer PRIMARY KEY, note text);
CREATE TABLE once (id integer PRIMARY KEY, note text);
CREATE TABLE sole (note text);
CREATE TABLE by_row (id integer PRIMARY KEY, note text);
CREATE TABLE trial (id integer PRIMARY KEY, note text);
CREATE TABLE free (note text);
SELECT lockfence.attach('item', 'grant:{grp}', 'token');
SELECT lockfence.attach('strict', 'grant:strict-{id}', 'token', accept => 'presented');
SELECT lockfence.attach('once', 'grant:once-{id}', repeat => 'reject');
SELECT lockfence.attach('sole', 'grant:sole');
SELECT lockfence.attach('by_row');
SELECT lockfence.attach('trial', 'grant:trial-{id}', enforcement => 'advisory');
INSERT INTO item VALUES (1, 'a', 'new', 40), (2, 'b', 'new', 40), (3, 'x = y', 'new', 40);
INSERT INTO by_row VALUES (1, 'new', 40);

\set start 'options=''-c search_path=test_session_grant -c client_min_messages=warning -c lockfence.session_grant='
\set end ''''

-- A bare token, in autocommit, on every kind of fence.
\set connection :start '43' :end
\c -reuse-previous=on :connection
SELECT * FROM lockfence.presented();
UPDATE item SET note = 'a bare grant' WHERE id = 1 RETURNING *;
INSERT INTO strict VALUES (1, 'new') RETURNING *;
INSERT INTO sole VALUES ('new');
UPDATE by_row SET note = 'a bare grant' RETURNING *;
COPY item FROM stdin;
4	c	copied	\N
\.
SELECT id, note, token FROM item WHERE id IN (1, 4) ORDER BY id;
SELECT resource, token FROM lockfence.mark WHERE resource LIKE 'grant:%' ORDER BY resource;
TRUNCATE sole;
-- It is one grant: another token beside it is a conflict, unless it replaces the ambient one.
SELECT * FROM try('UPDATE item SET token = 44 WHERE id = 1');
UPDATE item SET note = 'the same', token = 43 WHERE id = 1;
SELECT * FROM try($$SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "g"}', 44)$$);
SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "g"}', 43);
BEGIN;
SELECT lockfence.present(44);
UPDATE item SET note = 'the transaction''s own' WHERE id = 1 RETURNING token;
SELECT * FROM lockfence.presented() ORDER BY resource COLLATE "C" NULLS FIRST;
ROLLBACK;
BEGIN;
SAVEPOINT a;
SELECT lockfence.present(44);
ROLLBACK TO a;
UPDATE item SET note = 'after the savepoint' WHERE id = 1 RETURNING token;
COMMIT;
-- Once another holder has taken over, all of it is refused.
BEGIN;
SELECT lockfence.present(50);
UPDATE item SET note = 'taken over' WHERE id = 1;
UPDATE by_row SET note = 'taken over';
INSERT INTO sole VALUES ('taken over');
COMMIT;
SELECT code, message, detail FROM try('UPDATE item SET note = ''late'' WHERE id = 1');
SELECT code FROM try('UPDATE by_row SET note = ''late''');
SELECT code FROM try('INSERT INTO sole VALUES (''late'')');
SELECT code FROM try('UPDATE item SET note = ''other'' WHERE id = 2');
-- A fence that accepts a token once takes it in one transaction.
INSERT INTO once VALUES (1, 'first');
SELECT code, message FROM try('UPDATE once SET note = ''second''');
-- It cannot be changed.
SET lockfence.session_grant = '99';
SET LOCAL lockfence.session_grant = '99';
SELECT set_config('lockfence.session_grant', '99', false);
RESET lockfence.session_grant;
CREATE FUNCTION sneak() RETURNS void LANGUAGE sql SET lockfence.session_grant = '99' AS 'SELECT';
ALTER SYSTEM SET lockfence.session_grant = '99';
ALTER ROLE CURRENT_USER SET lockfence.session_grant = '99';
UPDATE pg_settings SET setting = '99' WHERE name = 'lockfence.session_grant';
RESET ALL;
DISCARD ALL;
SHOW lockfence.session_grant;
SELECT source, context FROM pg_settings WHERE name = 'lockfence.session_grant';
SELECT * FROM lockfence.presented();

-- Named tokens, each in a line of its own: the token comes after the last "=", and blanks take a backslash.
\set connection :start 'grant:b=43\\\\\ngrant:x\\\\ =\\\\ y=44\\\\\ngrant:new=45' :end
\c -reuse-previous=on :connection
SELECT * FROM lockfence.presented() ORDER BY token;
UPDATE item SET note = 'named' WHERE id IN (2, 3) RETURNING *;
INSERT INTO item VALUES (5, 'new', 'named') RETURNING *;
SELECT * FROM try('UPDATE item SET note = ''of another resource'' WHERE id = 1');
UPDATE item SET note = 'by the column', token = 60 WHERE id = 1;
-- Where the transaction presents another token for the resource, the session's came first.
BEGIN;
SELECT lockfence.present('grant:b', 46) AS previous;
UPDATE item SET note = 'takes over from itself' WHERE id = 2 RETURNING token;
SELECT * FROM lockfence.presented() ORDER BY token;
ROLLBACK;
SELECT lockfence.reset_mark('grant:b', 41, 'test');
SELECT lockfence.present('grant:b', 43) AS previous;
SELECT lockfence.reset_mark('grant:b', 41, 'test');
SELECT code, detail FROM try($$SELECT lockfence.present('grant:b', 42)$$);
SELECT code, detail FROM try($$SELECT lockfence.guarded_update('item', '{"id": 2, "grp": "b"}', '{"note": "g"}', 42)$$);
SELECT lockfence.guarded_update('item', '{"id": 2, "grp": "b"}', '{"note": "g"}', 47);
SELECT lockfence.reset_mark('grant:b', 41, 'test');
SELECT lockfence.issue('grant:b');
SELECT code, detail FROM try('UPDATE item SET note = ''late'' WHERE id = 2');
BEGIN;
SELECT lockfence.present(45);
SELECT * FROM try('UPDATE item SET note = ''ambient and named'' WHERE id = 3');
ROLLBACK;
-- Read-only transactions, and writes elsewhere, have nothing to do with it.
BEGIN READ ONLY;
SELECT count(*) FROM item;
SELECT lockfence.is_current('grant:new', 45), lockfence.is_current('grant:new', 44);
COMMIT;
INSERT INTO free VALUES ('x');
-- An administrator's act in the transaction counts.
BEGIN;
UPDATE item SET note = 'held' WHERE id = 3;
SELECT lockfence.raise_mark('grant:x = y', 100, 'test');
SELECT code FROM try('UPDATE item SET note = ''not any more'' WHERE id = 3');
ROLLBACK;

-- A bare token beside named ones; and a default validator, which is asked about a lock before the token raises the mark in a row.
CREATE FUNCTION knows(resource text, token lockfence.fence_token) RETURNS boolean LANGUAGE sql AS
$$SELECT resource = 'grant:lock'$$;
\set connection :start '61\\\\\ngrant:lock=61' :end
\c -reuse-previous=on :connection
LOAD 'lockfence';
SET lockfence.validator = 'test_session_grant.knows(text, lockfence.fence_token)';
UPDATE by_row SET note = 'vouched for' RETURNING fence;
SELECT resource, token FROM lockfence.mark WHERE resource = 'grant:lock';
RESET lockfence.validator;

-- What cannot be read is refused by the first fenced write, and by presented(); the session goes on.
\pset expanded on
\pset format unaligned
\set connection :start 'settle' :end
\c -reuse-previous=on :connection
INSERT INTO free VALUES ('y');
SELECT count(*) FROM item;
SELECT * FROM try('UPDATE item SET note = ''unreadable'' WHERE id = 1');
SELECT * FROM try('UPDATE item SET note = ''unreadable'', token = 70 WHERE id = 1');
SELECT * FROM try('SELECT lockfence.present(''grant:a'', 70)');
SELECT * FROM try('SELECT lockfence.issue(''grant:a'')');
SELECT * FROM try('SELECT * FROM lockfence.presented()');
INSERT INTO trial VALUES (1, 'on an advisory fence it is a report');
\set connection :start '0' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start '-5' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start '9223372036854775808' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start 'a=43x' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start '=43' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start '43\\\\\n44' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start 'a=43\\\\\na=43' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start 'a=43\\\\\n' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
SELECT repeat('n', 1024) || '=43' AS longest, repeat('n', 1025) || '=43' AS too_long \gset
\set connection :start :longest :end
\c -reuse-previous=on :connection
SELECT length(resource), token FROM lockfence.presented();
\set connection :start :too_long :end
\c -reuse-previous=on :connection
SELECT code, left(detail, 40) || right(detail, 60) AS detail FROM try('SELECT lockfence.presented()');

-- The session's role needs the privilege to call present(), in the form that was given; SET ROLE and owners' functions neither give nor take it.
\set connection :start '75' :end
\c -reuse-previous=on :connection
CREATE ROLE regress_lf_grantee;
CREATE ROLE regress_lf_presenter;
CREATE ROLE regress_lf_presenters;
GRANT USAGE ON SCHEMA test_session_grant TO PUBLIC;
GRANT ALL ON ALL TABLES IN SCHEMA test_session_grant TO PUBLIC;
GRANT EXECUTE ON FUNCTION lockfence.present(lockfence.fence_token) TO regress_lf_presenter;
GRANT EXECUTE ON FUNCTION lockfence.present(text, lockfence.fence_token) TO regress_lf_grantee;
CREATE FUNCTION write_as_owner() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = test_session_grant, pg_temp
AS $$UPDATE item SET note = 'by the owner''s function' WHERE id = 1$$;
SET SESSION AUTHORIZATION regress_lf_presenter;
UPDATE item SET note = 'as a presenter' WHERE id = 1;
SELECT token FROM lockfence.presented();
RESET SESSION AUTHORIZATION;
SET ROLE regress_lf_grantee;
UPDATE item SET note = 'the session''s role counts' WHERE id = 1;
RESET ROLE;
SET SESSION AUTHORIZATION regress_lf_grantee;
SELECT * FROM try('UPDATE item SET note = ''not permitted'' WHERE id = 1');
SELECT * FROM try('UPDATE item SET note = ''not permitted'', token = 75 WHERE id = 1');
SELECT code FROM try('SELECT lockfence.presented()');
SELECT code FROM try('SELECT write_as_owner()');
INSERT INTO free VALUES ('needs no privilege');
RESET SESSION AUTHORIZATION;
-- What changes meanwhile counts from the next write.
GRANT regress_lf_presenters TO regress_lf_grantee;
GRANT EXECUTE ON FUNCTION lockfence.present(lockfence.fence_token) TO regress_lf_presenters;
SET SESSION AUTHORIZATION regress_lf_grantee;
SELECT code FROM try('UPDATE item SET note = ''permitted'' WHERE id = 1');
RESET SESSION AUTHORIZATION;
REVOKE regress_lf_presenters FROM regress_lf_grantee;
SET SESSION AUTHORIZATION regress_lf_grantee;
SELECT code FROM try('UPDATE item SET note = ''not any more'' WHERE id = 1');
RESET SESSION AUTHORIZATION;
GRANT EXECUTE ON FUNCTION lockfence.present(lockfence.fence_token) TO regress_lf_grantee;
SET SESSION AUTHORIZATION regress_lf_grantee;
SELECT code FROM try('UPDATE item SET note = ''again'' WHERE id = 1');
RESET SESSION AUTHORIZATION;
REVOKE EXECUTE ON FUNCTION lockfence.present(lockfence.fence_token) FROM regress_lf_grantee;
SET SESSION AUTHORIZATION regress_lf_grantee;
SELECT code FROM try('UPDATE item SET note = ''not any more'' WHERE id = 1');
RESET SESSION AUTHORIZATION;
-- A named token takes the other form.
\set connection :start 'grant:a=76' :end
\c -reuse-previous=on :connection
SET SESSION AUTHORIZATION regress_lf_grantee;
SELECT code FROM try('UPDATE item SET note = ''permitted'' WHERE id = 1');
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_lf_presenter;
SELECT code, detail FROM try('UPDATE item SET note = ''not permitted'' WHERE id = 1');
RESET SESSION AUTHORIZATION;
-- Its name is the session's own, and no secret to it, though a row that the role may not read has it.
REVOKE ALL ON item FROM PUBLIC;
GRANT INSERT ON item TO regress_lf_grantee;
SET SESSION AUTHORIZATION regress_lf_grantee;
BEGIN;
INSERT INTO item VALUES (6, 'a', 'hidden');
SELECT * FROM lockfence.presented();
COMMIT;
RESET SESSION AUTHORIZATION;

\c -reuse-previous=on "options='-c client_min_messages=warning'"
DROP OWNED BY regress_lf_grantee, regress_lf_presenter, regress_lf_presenters;
DROP ROLE regress_lf_grantee, regress_lf_presenter, regress_lf_presenters;
DROP SCHEMA test_session_grant CASCADE;
