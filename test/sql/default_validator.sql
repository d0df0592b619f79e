-- lockfence.validator is asked before a token raises a mark, where no fence names a validator of its own.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA test_default_validator;
SET search_path = test_default_validator;
-- A lock service: what it has granted, and how often it was asked, which no rollback takes back.
CREATE TABLE granted (resource text, token bigint);
CREATE SEQUENCE calls;
CREATE FUNCTION asked() RETURNS bigint LANGUAGE sql AS $$
	SELECT setval('test_default_validator.calls', 1, false) - 1 + n
	FROM (SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS n FROM test_default_validator.calls) c
$$;
CREATE FUNCTION judge(resource text, token lockfence.fence_token) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM nextval('test_default_validator.calls');
	IF token = 666 THEN
		RAISE EXCEPTION 'the lock service is away'
			USING ERRCODE = 'LF008', DETAIL = 'It does not answer.', HINT = 'Wait for it.';
	END IF;
	RETURN EXISTS (SELECT FROM test_default_validator.granted g WHERE g.resource = judge.resource AND g.token = judge.token);
END
$$;
INSERT INTO granted SELECT r, t FROM unnest('{default:lock,default:a,default:b,default:constant}'::text[]) r, generate_series(10, 40) t;

CREATE TABLE by_row (id integer PRIMARY KEY, note text);
CREATE TABLE by_template (id integer PRIMARY KEY, grp text NOT NULL, note text);
CREATE TABLE by_constant (note text);
CREATE TABLE own_validator (note text);
CREATE FUNCTION agree(resource text, token bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT lockfence.attach('by_row');
SELECT lockfence.attach('by_template', 'default:{grp}', 'token');
SELECT lockfence.attach('by_constant', 'default:constant');
SELECT lockfence.attach('own_validator', 'default:own', validator => 'agree(text, bigint)');
INSERT INTO by_row VALUES (1, 'new', 10), (2, 'new', 10);
SELECT asked() AS "asked without one";

SET lockfence.validator = 'test_default_validator.judge(text, lockfence.fence_token)';

-- present(): once for an advance, not for an equal token, nor for a stale one.
SELECT lockfence.present('default:lock', 10);
SELECT asked() AS "asked";
SELECT lockfence.present('default:lock', 10);
BEGIN;
SELECT lockfence.present('default:lock', 10);
SELECT lockfence.present('default:lock', 10);
COMMIT;
SELECT lockfence.present('default:lock', 9);
\echo :LAST_ERROR_SQLSTATE
SELECT asked() AS "not asked";
-- A token that was granted to no holder, and one that would lock out every holder for good.
SELECT lockfence.present('default:lock', 41);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present('default:lock', 9223372036854775807);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present('default:never', 9223372036854775807);
\echo :LAST_ERROR_SQLSTATE
SELECT asked() AS "asked";

-- A template: once per resource, however many rows.
INSERT INTO by_template SELECT n, 'a', 'new', 20 FROM generate_series(1, 100) n;
UPDATE by_template SET note = 'equal', token = 20;
SELECT asked() AS "asked";
UPDATE by_template SET note = 'poisoned', token = 9223372036854775807 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT lockfence.present(9223372036854775807);
UPDATE by_template SET note = 'poisoned' WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- A row that moves: each resource is asked about.
UPDATE by_template SET grp = 'b', token = 21 WHERE id = 1;
SELECT asked() AS "asked";

-- A constant fence, and one that has a validator of its own.
BEGIN;
SELECT lockfence.present(30);
INSERT INTO by_constant VALUES ('granted');
COMMIT;
BEGIN;
SELECT lockfence.present(9223372036854775807);
INSERT INTO by_constant VALUES ('poisoned');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SELECT asked() AS "asked";
BEGIN;
SELECT lockfence.present(9223372036854775807);
INSERT INTO own_validator VALUES ('agreed');
ROLLBACK;
SELECT asked() AS "not asked";

-- Guarded writes, whether or not the key names the resource.
SELECT lockfence.guarded_update('by_template', '{"grp": "a", "id": 2}', '{"note": "guarded"}', 9223372036854775807);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('by_template', '{"id": 2}', '{"note": "guarded"}', 9223372036854775807);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_delete('by_template', '{"id": 2}', 9223372036854775807);
\echo :LAST_ERROR_SQLSTATE
SELECT asked() AS "asked";
SELECT lockfence.guarded_update('by_template', '{"grp": "a", "id": 2}', '{"note": "guarded"}', 22);
SELECT asked() AS "asked";

-- A row fence has no name to ask by: the transaction must have had the token accepted for a lock.
UPDATE by_row SET note = 'poisoned', fence = 9223372036854775807 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO by_row VALUES (3, 'poisoned', 9223372036854775807);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.guarded_update('by_row', '{"id": 1}', '{"note": "poisoned"}', 9223372036854775807);
\echo :LAST_ERROR_SQLSTATE
UPDATE by_row SET note = 'equal', fence = 10 WHERE id = 1;
BEGIN;
SELECT lockfence.present('default:lock', 11);
UPDATE by_row SET note = 'vouched for', fence = 11;
INSERT INTO by_row VALUES (3, 'vouched for', 11);
SAVEPOINT s;
-- ... whichever of the locks of the transaction
SELECT lockfence.present('default:a', 38), lockfence.present('default:b', 39);
UPDATE by_row SET note = 'by the second', fence = 38 WHERE id = 1;
UPDATE by_row SET note = 'by the third', fence = 39 WHERE id = 1;
ROLLBACK TO s;
SELECT lockfence.present('default:lock', 12);
ROLLBACK TO s;
UPDATE by_row SET note = 'rolled back', fence = 12 WHERE id = 1;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO s;
COMMIT;
SELECT * FROM by_row ORDER BY id;
SELECT asked() AS "asked";

-- If the validator cannot be called, writes are refused; what was written before stays writable.
SELECT lockfence.present('default:lock', 666);
\echo :LAST_ERROR_SQLSTATE
SET lockfence.validator = 'test_default_validator.missing(text, bigint)';
SELECT lockfence.present('default:lock', 13);
\echo :LAST_ERROR_SQLSTATE
SET lockfence.validator = 'test_default_validator.judge(text, no_such_type)';
SELECT lockfence.present('default:lock', 13);
\echo :LAST_ERROR_SQLSTATE
SET lockfence.validator = 'no_such_schema.judge(text, bigint)';
SELECT lockfence.present('default:lock', 13);
\echo :LAST_ERROR_SQLSTATE
SET lockfence.validator = 'not a signature(';
SELECT lockfence.present('default:lock', 13);
\echo :LAST_ERROR_SQLSTATE
SET lockfence.validator = 'pg_catalog.starts_with(text, text)';
SELECT lockfence.present('default:lock', 13);
\echo :LAST_ERROR_SQLSTATE
SET lockfence.validator = 'pg_catalog.pg_relation_size(regclass, text)';
SELECT lockfence.present('default:lock', 13);
\echo :LAST_ERROR_SQLSTATE
-- A path does not help to find it, nor to find another.
SET lockfence.validator = 'judge(text, lockfence.fence_token)';
SELECT lockfence.present('default:lock', 13);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present('default:lock', 11);
UPDATE by_template SET note = 'equal', token = 22 WHERE id = 2;

-- It is found anew when it changes.
SET lockfence.validator = 'test_default_validator.judge(text, lockfence.fence_token)';
SELECT lockfence.present('default:lock', 13);
CREATE OR REPLACE FUNCTION judge(resource text, token lockfence.fence_token) RETURNS boolean LANGUAGE sql AS 'SELECT false';
SELECT lockfence.present('default:lock', 14);
\echo :LAST_ERROR_SQLSTATE
DROP FUNCTION judge;
SELECT lockfence.present('default:lock', 14);
\echo :LAST_ERROR_SQLSTATE
ALTER FUNCTION agree(text, bigint) RENAME TO judge;
SELECT lockfence.present('default:lock', 14);
\echo :LAST_ERROR_SQLSTATE
SET lockfence.validator = 'test_default_validator.judge(text, bigint)';
SELECT lockfence.present('default:lock', 14);
ALTER SCHEMA test_default_validator RENAME TO test_default_renamed;
SELECT lockfence.present('default:lock', 15);
\echo :LAST_ERROR_SQLSTATE
ALTER SCHEMA test_default_renamed RENAME TO test_default_validator;
SELECT lockfence.present('default:lock', 15);

-- An advisory fence reports what it cannot ask about, and lets the write pass.
CREATE FUNCTION away(resource text, token bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'the lock service is away' USING ERRCODE = 'LF008';
END
$$;
CREATE TABLE advised (note text);
SELECT lockfence.attach('advised', 'default:advised', 'token', enforcement => 'advisory', validator => 'away(text, bigint)');
INSERT INTO advised VALUES ('written', 10);
SELECT note FROM advised;
SELECT count(*) FROM lockfence.mark WHERE resource = 'default:advised';

-- Set by superusers alone; it needs no privilege of the role that writes, nor an open schema.
CREATE ROLE regress_default_writer;
GRANT EXECUTE ON FUNCTION lockfence.present(text, lockfence.fence_token) TO regress_default_writer;
REVOKE EXECUTE ON FUNCTION judge(text, bigint) FROM PUBLIC;
\c -
SET lockfence.validator = 'test_default_validator.judge(text, bigint)';
SET ROLE regress_default_writer;
SELECT lockfence.present('default:lock', 16);
SET lockfence.validator = '';
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

SET client_min_messages = warning;
REVOKE EXECUTE ON FUNCTION lockfence.present(text, lockfence.fence_token) FROM regress_default_writer;
DROP SCHEMA test_default_validator CASCADE;
DROP ROLE regress_default_writer;
