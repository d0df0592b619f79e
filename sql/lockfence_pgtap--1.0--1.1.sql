\echo Use "ALTER EXTENSION lockfence_pgtap UPDATE TO '1.1'" to load this file. \quit

-- ---------------------------------------------------------------- lock tables

-- The view of the issuers belongs to lockfence_lease, which may not be installed.
CREATE FUNCTION _issued_resource(target regclass)
RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
	resource text;
BEGIN
	IF to_regclass('lockfence.issuers') IS NOT NULL THEN
		EXECUTE 'SELECT i.resource FROM lockfence.issuers i WHERE i.target = $1' INTO resource USING target;
	END IF;
	RETURN resource;
END
$$;
COMMENT ON FUNCTION _issued_resource(regclass) IS
'the resource whose tokens a lock table issues, as declared by issue_from(); null: the table issues none';

CREATE FUNCTION lock_table_issues(target text, resource text DEFAULT NULL, description text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	relation regclass := to_regclass(target);
	issued text := _issued_resource(relation);
	findings text := CASE WHEN issued IS NOT NULL THEN _fence_finding_text(relation) END;
BEGIN
	RETURN _fence_verdict(
		issued IS NOT NULL AND issued = coalesce(resource, issued) AND findings IS NULL,
		coalesce(description, format('Lock table %s should issue tokens%s', target, ' of resource ' || resource)),
		CASE
			WHEN relation IS NULL THEN format('    table %s does not exist', target)
			WHEN issued IS NULL THEN format(E'    table %s issues no tokens\n    decide:   declare it by lockfence.issue_from(), of the extension lockfence_lease', target)
			ELSE concat_ws(E'\n', CASE WHEN issued <> resource THEN format(E'        have: resource = %s\n        want: resource = %s', issued, resource) END,
				findings) END);
END
$$;
COMMENT ON FUNCTION lock_table_issues(text, text, text) IS
'asserts that a lock table issues tokens (of this resource, as the view lockfence.issuers shows it; null: of any), and that lockfence.verify() finds nothing about it. Example: lock_table_issues(''shedlock'', ''shedlock:{name}'')';

-- ---------------------------------------------------------------- DDL

CREATE FUNCTION ddl_is_fenced(resource text DEFAULT NULL, description text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	fenced text := (SELECT string_agg(d.resource, ', ' ORDER BY d.resource) FROM lockfence.ddl_fence d);
	findings text := (
		SELECT string_agg(concat(format('    %s: %s', v.code, v.problem), E'\n    mend it:  ' || v.remedy, E'\n    decide:   ' || v.advice), E'\n')
		FROM lockfence.verify() v WHERE v.code = 'ddl_fence');
BEGIN
	RETURN _fence_verdict(
		fenced IS NOT NULL AND fenced = coalesce(resource, fenced) AND findings IS NULL,
		coalesce(description, 'DDL should be fenced' || coalesce(' by resource ' || resource, '')),
		concat_ws(E'\n',
			CASE
				WHEN fenced IS NULL THEN E'    DDL is not fenced\n    decide:   fence it by lockfence.fence_ddl(), with the resource that the lock of the migrations is named by'
				WHEN fenced <> resource THEN format(E'        have: resource = %s\n        want: resource = %s', fenced, resource)
			END, findings));
END
$$;
COMMENT ON FUNCTION ddl_is_fenced(text, text) IS
'asserts that DDL in the database needs a grant of this resource (null: of any), and that lockfence.verify() finds nothing about it. Example: ddl_is_fenced(''migrations'')';

-- ---------------------------------------------------------------- findings

-- Without information on the server, which a table's owner cannot change, and on the owner: the roles of a test
-- database are others.
CREATE OR REPLACE FUNCTION _fence_finding_text(target regclass)
RETURNS text
LANGUAGE sql
AS $$
	SELECT string_agg(
		concat(format('    %s: %s: %s', v.severity, v.code, v.problem), E'\n    mend it:  ' || v.remedy, E'\n    decide:   ' || v.advice),
		E'\n' ORDER BY v.place)
	FROM (
		SELECT f.severity, f.code, f.problem, f.remedy, f.advice, row_number() OVER () AS place
		FROM lockfence.verify(target) f
		WHERE f.severity <> 'info' OR f.target IS NOT NULL AND f.code <> 'owner_can_login'
	) AS v
$$;

-- ---------------------------------------------------------------- words

COMMENT ON FUNCTION refuses_missing(text, text) IS
'asserts that a statement that presents no token is refused with LF002. It is rolled back';
COMMENT ON FUNCTION survives_zombie(text, jsonb, jsonb, text) IS
'asserts that lockfence.drill() refuses a stale holder on every path; the diagnostics are the statements that passed, and what lockfence.verify() finds. Example: survives_zombie(''batch'', ''{"batch_id": 9921}'', ''{"state": "settled"}'')';

-- ---------------------------------------------------------------- fences that take named tokens

-- A fence with accept => 'named' takes no ambient token, so the statement is tried once more, with the token
-- presented for the resource, if it was refused for want of that.
CREATE OR REPLACE FUNCTION _fence_attempt(
	statement text, resource text, token bigint, is_outdated boolean,
	OUT state text, OUT message text, OUT is_fenced boolean)
LANGUAGE plpgsql
AS $$
DECLARE
	by_name boolean;
BEGIN
	FOREACH by_name IN ARRAY ARRAY[false, true] LOOP
		CONTINUE WHEN by_name AND (token IS NULL OR state IS DISTINCT FROM 'LF002'
			OR message <> format('no fencing token was presented for resource "%s"', resource));
		state := NULL;
		message := NULL;
		BEGIN
			IF is_outdated AND resource IS NOT NULL THEN
				PERFORM lockfence._reset_mark(resource, greatest(_fence_mark(resource), token + 1));
			END IF;
			IF by_name THEN
				PERFORM lockfence.present(resource, token);
			ELSIF token IS NOT NULL THEN
				PERFORM lockfence.present(token);
			END IF;
			EXECUTE _query(statement);
			is_fenced := EXISTS (SELECT FROM lockfence.presented() p WHERE p.resource = _fence_attempt.resource);
			RAISE EXCEPTION USING ERRCODE = 'LFEND';
		EXCEPTION
			WHEN SQLSTATE 'LFEND' THEN
				NULL;
			WHEN OTHERS THEN
				state := SQLSTATE;
				message := SQLERRM;
		END;
	END LOOP;
END
$$;
