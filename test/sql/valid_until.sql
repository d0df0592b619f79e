-- present(resource, token, valid_until): after that instant, writes under the token are refused.  What the commit refuses is in test/t.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET TimeZone = 'UTC';
CREATE SCHEMA test_valid_until;
SET search_path = test_valid_until;
CREATE FUNCTION try(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text, OUT in_table text)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	code := 'none';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
		hint = PG_EXCEPTION_HINT, in_table = TABLE_NAME;
END
$$;
CREATE TABLE item (id integer PRIMARY KEY, note text);
CREATE TABLE sole (note text);
CREATE TABLE trial (id integer PRIMARY KEY, note text);
CREATE TABLE by_row (id integer PRIMARY KEY, note text);
SELECT lockfence.attach('item', 'until:{id}', 'token');
SELECT lockfence.attach('sole', 'until:sole');
SELECT lockfence.attach('trial', 'until:trial-{id}', enforcement => 'advisory');
SELECT lockfence.attach('by_row');
INSERT INTO item SELECT g, 'new', 40 FROM generate_series(1, 3) g;
INSERT INTO by_row VALUES (1, 'new', 40);
SELECT lockfence.present('until:sole', 40);
\pset expanded on
\pset format unaligned

-- An instant to come changes nothing; one that has passed is refused at once, and has raised no mark.
BEGIN;
SELECT lockfence.present('until:1', 43, 'infinity'), lockfence.present('until:2', 43, NULL),
	lockfence.present('until:3', 43, clock_timestamp() + interval '1 day');
UPDATE item SET note = 'in time';
DELETE FROM item WHERE id = 3;
SELECT * FROM lockfence.presented() ORDER BY resource COLLATE "C";
COMMIT;
SELECT * FROM try($$SELECT lockfence.present('until:1', 44, '2020-01-01 12:00:00+00')$$);
SELECT code FROM try($$SELECT lockfence.present('until:1', 44, '-infinity')$$);
SELECT code FROM try($$SELECT lockfence.present('until:1', 44, '2000-01-01 00:00:00+00')$$);
SELECT token FROM lockfence.mark WHERE resource = 'until:1';
-- A stale token is stale first.
SELECT code FROM try($$SELECT lockfence.present('until:1', 42, '2020-01-01 12:00:00+00')$$);
SELECT code FROM try($$SELECT lockfence.present('until:1', NULL::bigint, '2020-01-01 12:00:00+00')$$);
SELECT code FROM try($$SELECT lockfence.present(NULL, 43, '2020-01-01 12:00:00+00')$$);

-- The session's grant with an end, in each form; those that cannot be read.
\set start 'options=''-c search_path=test_valid_until -c client_min_messages=warning -c lockfence.session_grant='
\set end ''''
\set connection :start '50@2020-01-01T12:00:00Z' :end
\c -reuse-previous=on :connection
SET TimeZone = 'UTC';
SELECT * FROM try('UPDATE item SET note = ''ended'' WHERE id = 1');
SELECT code FROM try('UPDATE item SET note = ''ended'', token = 50 WHERE id = 1');
SELECT code FROM try('INSERT INTO sole VALUES (''ended'')');
SELECT code FROM try($$SELECT lockfence.guarded_update('item', '{"id": 1}', '{"note": "ended"}', 50)$$);
SELECT code FROM try($$SELECT lockfence.guarded_delete('item', '{"id": 4711}', 50)$$);
SELECT * FROM try('UPDATE by_row SET note = ''ended''');
SELECT code FROM try('INSERT INTO by_row VALUES (2, ''has no holder yet'')');
SELECT code FROM try('DELETE FROM by_row');
INSERT INTO trial VALUES (1, 'an advisory fence reports it');
SELECT id, note, token FROM item ORDER BY id;
SELECT token FROM lockfence.mark WHERE resource = 'until:1';
-- Any token of the transaction's own has its own end, or none.
BEGIN;
SELECT lockfence.present('until:1', 50, now() + interval '1 day');
UPDATE item SET note = 'renewed' WHERE id = 1;
SELECT code FROM try('UPDATE item SET note = ''another resource'' WHERE id = 2');
ROLLBACK;
BEGIN;
SELECT lockfence.present(51);
UPDATE item SET note = 'another grant';
UPDATE by_row SET note = 'another grant';
ROLLBACK;
SELECT code FROM try($$SELECT lockfence.present('until:1', 50)$$);
SELECT lockfence.guarded_update('by_row', '{"id": 4711}', '{"note": "no such row"}', 50);
\set connection :start 'until:1=50@2020-01-01T12:00:00Z\\\\\nuntil:2=50@2100-01-01T12:00:00.5+02:30\\\\\nuntil:user@host=50' :end
\c -reuse-previous=on :connection
SELECT * FROM lockfence.presented() ORDER BY resource COLLATE "C";
SELECT code FROM try('UPDATE item SET note = ''ended'' WHERE id = 1');
UPDATE item SET note = 'in time' WHERE id = 2;
SELECT code FROM try($$SELECT lockfence.present('until:1', 51)$$);
SELECT code FROM try($$SELECT lockfence.issue('until:1')$$);
SELECT lockfence.present('until:1', 50, NULL);

\set connection :start '50@' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start '50@tomorrow' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start '50@2026-12-01T13:00:00' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start '50@01-02-2026T13:00:00Z' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start '50@2026-02-30T13:00:00Z' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start '50@2026-12-01T13:00:00Z@2026-12-01T13:00:00Z' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');
\set connection :start 'until:1=@2026-12-01T13:00:00Z' :end
\c -reuse-previous=on :connection
SELECT code, detail FROM try('SELECT lockfence.presented()');

-- Within a transaction the end may be moved; ROLLBACK TO takes that back, and only the token's own end counts.
\c -reuse-previous=on "options='-c search_path=test_valid_until -c client_min_messages=warning'"
BEGIN;
SELECT lockfence.present('until:1', 60, now() + interval '1 day');
SELECT lockfence.present('until:1', 60);
UPDATE item SET note = 'the end is as it was' WHERE id = 1;
SAVEPOINT a;
SELECT code FROM try($$SELECT lockfence.present('until:1', 60, '2020-01-01')$$);
UPDATE item SET note = 'still in time' WHERE id = 1;
SELECT lockfence.present('until:1', 61);
UPDATE item SET note = 'of a higher token' WHERE id = 1;
ROLLBACK TO a;
UPDATE item SET note = 'after the savepoint' WHERE id = 1 RETURNING token;
COMMIT;
SELECT token FROM lockfence.mark WHERE resource = 'until:1';
-- Many rows of one statement.
BEGIN;
CREATE TABLE line (id integer, batch integer);
SELECT lockfence.attach('line', 'until:batch-{batch}', 'token');
SELECT lockfence.present('until:batch-1', 60, now() + interval '1 day');
INSERT INTO line SELECT g, 1 FROM generate_series(1, 1000) g;
UPDATE line SET id = id + 1;
COMMIT;
SELECT count(*), min(token), max(token) FROM line;
-- The privilege is one of its own.
CREATE ROLE regress_lf_until;
GRANT USAGE ON SCHEMA test_valid_until TO regress_lf_until;
GRANT EXECUTE ON FUNCTION lockfence.present(text, lockfence.fence_token) TO regress_lf_until;
SET ROLE regress_lf_until;
SELECT code FROM try($$SELECT lockfence.present('until:1', 60, now())$$);
RESET ROLE;
DROP OWNED BY regress_lf_until;
DROP ROLE regress_lf_until;
DROP SCHEMA test_valid_until CASCADE;
