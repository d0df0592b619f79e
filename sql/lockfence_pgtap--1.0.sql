\echo Use "CREATE EXTENSION lockfence_pgtap" to load this file. \quit

-- Assertions, to be called as pgTAP's own are: unqualified, with the description
-- last.  So the extension can be created in any schema and be moved, like pgTAP,
-- and its functions find each other and pgTAP's ok() and diag() as pgTAP finds
-- its own, by the search path.  They run the tester's statements with the
-- tester's privileges, and are for test databases only.

-- ---------------------------------------------------------------- inside

CREATE FUNCTION _fence_verdict(passed boolean, description text, found text)
RETURNS text
LANGUAGE sql
AS $$
	SELECT ok(passed, description) || CASE WHEN passed THEN '' ELSE E'\n' || diag(found) END
$$;
COMMENT ON FUNCTION _fence_verdict(boolean, text, text) IS
'the result of an assertion; where it failed, with what was found';

CREATE FUNCTION _fence_absence(target text)
RETURNS text
LANGUAGE sql STABLE
AS $$
	SELECT CASE
		WHEN to_regclass(target) IS NULL
			THEN format('    table %s does not exist', target)
		ELSE (
			SELECT concat(format('    table %s has no fence', target),
				(SELECT format(E'\n    it has a token column, "%s", so it may have had one', attname)
				FROM pg_catalog.pg_attribute
				WHERE attrelid = to_regclass(target) AND NOT attisdropped
					AND atttypid = 'lockfence.fence_token'::regtype
				ORDER BY attnum LIMIT 1),
				E'\n    decide:   fence it by lockfence.attach(), with the resource that its lock is named by'))
	END
$$;
COMMENT ON FUNCTION _fence_absence(text) IS
'what to say of a table that has no fence';

-- Without information on the server, which a table's owner cannot change.
CREATE FUNCTION _fence_finding_text(target regclass)
RETURNS text
LANGUAGE sql
AS $$
	SELECT string_agg(
		concat(format('    %s: %s: %s', v.severity, v.code, v.problem), E'\n    mend it:  ' || v.remedy, E'\n    decide:   ' || v.advice),
		E'\n' ORDER BY v.place)
	FROM (
		SELECT f.severity, f.code, f.problem, f.remedy, f.advice, row_number() OVER () AS place
		FROM lockfence.verify(target) f
		WHERE f.severity <> 'info' OR f.target IS NOT NULL
	) AS v
$$;
COMMENT ON FUNCTION _fence_finding_text(regclass) IS
'the findings of lockfence.verify(), but for information on the server; null: none';

CREATE FUNCTION _fence_mark(resource text)
RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT m.token::bigint FROM lockfence.mark m WHERE m.resource = _fence_mark.resource
$$;
COMMENT ON FUNCTION _fence_mark(text) IS
'the mark of a resource; null: none';

-- Runs a statement under a token (null: none) in a subtransaction that is rolled
-- back, with the mark of the resource (null: let it be) at a newer grant's if
-- there is to be one.  Null: the statement ran.  Whichever error comes is what is
-- asserted, so all are expected.
CREATE FUNCTION _fence_attempt(
	statement text, resource text, token bigint, is_outdated boolean,
	OUT state text, OUT message text, OUT is_fenced boolean)
LANGUAGE plpgsql
AS $$
BEGIN
	BEGIN
		IF is_outdated AND resource IS NOT NULL THEN
			PERFORM lockfence._reset_mark(resource, greatest(_fence_mark(resource), token + 1));
		END IF;
		IF token IS NOT NULL THEN
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
END
$$;
COMMENT ON FUNCTION _fence_attempt(text, text, bigint, boolean) IS
'what comes of a statement that is run under a token and rolled back: the error, or whether it met a fence of the resource';

CREATE FUNCTION _fence_refusal(attempt record, wanted text, description text, mending text)
RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
	RETURN _fence_verdict(attempt.state IS NOT DISTINCT FROM wanted, description, concat(
		'      caught: ', coalesce(attempt.state || ': ' || attempt.message, 'no exception'),
		E'\n      wanted: ', wanted,
		CASE
			WHEN attempt.state IS NULL THEN E'\n    ' || mending
			WHEN attempt.state = '42501' THEN E'\n    run the tests as a superuser'
			WHEN attempt.state NOT LIKE 'LF%' THEN
				E'\n    something else than the fence stopped the statement, so this says nothing about the fence'
		END));
END
$$;
COMMENT ON FUNCTION _fence_refusal(record, text, text, text) IS
'the result of an assertion that a statement is refused';

-- ---------------------------------------------------------------- fences

CREATE FUNCTION has_fence(target text, description text DEFAULT NULL)
RETURNS text
LANGUAGE sql
AS $$
	SELECT _fence_verdict(
		EXISTS (SELECT FROM lockfence.fences f WHERE f.target = to_regclass(has_fence.target)),
		coalesce(description, format('Table %s should have a fence', target)),
		_fence_absence(target))
$$;
COMMENT ON FUNCTION has_fence(text, text) IS
'asserts that a table is fenced. Whether the fence holds is asked by fence_is_intact() and survives_zombie()';

CREATE FUNCTION hasnt_fence(target text, description text DEFAULT NULL)
RETURNS text
LANGUAGE sql
AS $$
	SELECT _fence_verdict(
		NOT EXISTS (SELECT FROM lockfence.fences f WHERE f.target = to_regclass(hasnt_fence.target)),
		coalesce(description, format('Table %s should not have a fence', target)),
		(SELECT format(E'    it has a %s fence%s\n    take it off:  SELECT lockfence.detach(%L);',
				f.kind, ' of resource ' || f.resource, target)
			FROM lockfence.fences f WHERE f.target = to_regclass(hasnt_fence.target) LIMIT 1))
$$;
COMMENT ON FUNCTION hasnt_fence(text, text) IS
'asserts that a table is not fenced; one that does not exist is not';

CREATE FUNCTION fence_settings_are(target text, settings jsonb, description text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	actual jsonb := (
		SELECT to_jsonb(f) FROM lockfence.fences f
		WHERE f.target = to_regclass(fence_settings_are.target) LIMIT 1);
	differences text := (
		SELECT string_agg(format(E'        have: %s = %s\n        want: %s = %s',
				s.setting, coalesce(actual ->> s.setting, 'NULL'), s.setting, coalesce(s.value, 'NULL')),
			E'\n' ORDER BY s.setting)
		FROM jsonb_each_text(settings) AS s (setting, value)
		WHERE s.value IS DISTINCT FROM actual ->> s.setting);
BEGIN
	RETURN _fence_verdict(actual IS NOT NULL AND differences IS NULL,
		coalesce(description, format('Table %s should be fenced as declared', target)),
		CASE WHEN actual IS NULL THEN _fence_absence(target)
			ELSE concat(differences,
				E'\n    decide:   declare the fence anew, by lockfence.detach() and lockfence.attach() in one transaction') END);
END
$$;
COMMENT ON FUNCTION fence_settings_are(text, jsonb, text) IS
'asserts settings of a table''s fence, by the columns of lockfence.fences; those that are not named may be anything. Example: fence_settings_are(''batch'', ''{"kind": "template", "accept": "presented"}'')';

CREATE FUNCTION fence_is(target text, resource text, enforcement text DEFAULT 'fenced', description text DEFAULT NULL)
RETURNS text
LANGUAGE sql
AS $$
	SELECT fence_settings_are(target, jsonb_build_object('resource', resource, 'enforcement', enforcement),
		coalesce(description, CASE
			WHEN resource IS NULL THEN format('Table %s should have a row fence, %s', target, enforcement)
			ELSE format('Table %s should be %s by resource %s', target, enforcement, resource) END))
$$;
COMMENT ON FUNCTION fence_is(text, text, text, text) IS
'asserts the resource of a table''s fence, as given to attach() (null: a row fence), and its enforcement. Other settings: fence_settings_are()';

CREATE FUNCTION fences_are(schema name, tables name[], description text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	fenced name[] := ARRAY(
		SELECT c.relname
		FROM lockfence.fences f JOIN pg_catalog.pg_class c ON c.oid = f.target
		WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = schema)
			AND NOT f.inherited);
	extra text := (
		SELECT string_agg(format(E'\n        %I', t.name), '' ORDER BY t.name)
		FROM (SELECT unnest(fenced) EXCEPT SELECT unnest(tables)) AS t (name));
	missing text := (
		SELECT string_agg(format(E'\n        %I', t.name), '' ORDER BY t.name)
		FROM (SELECT unnest(tables) EXCEPT SELECT unnest(fenced)) AS t (name));
BEGIN
	RETURN _fence_verdict(extra IS NULL AND missing IS NULL,
		coalesce(description, format('Schema %I should have the right fenced tables', schema)),
		concat_ws(E'\n', '    Extra fenced tables:' || extra, '    Missing fences:' || missing,
			CASE WHEN missing IS NOT NULL THEN '    decide:   fence each by lockfence.attach()' END));
END
$$;
COMMENT ON FUNCTION fences_are(name, name[], text) IS
'asserts that the fenced tables of a schema are these and no others; a partition or child that has its parent''s fence is not counted';

CREATE FUNCTION fence_is_intact(target text, description text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	findings text := CASE WHEN to_regclass(target) IS NULL THEN _fence_absence(target)
		ELSE _fence_finding_text(to_regclass(target)) END;
BEGIN
	RETURN _fence_verdict(findings IS NULL,
		coalesce(description, format('The fence of table %s should be intact', target)), findings);
END
$$;
COMMENT ON FUNCTION fence_is_intact(text, text) IS
'asserts that lockfence.verify() finds nothing about a table, what is below it, and the database; the findings, their remedies and what is to be decided are the diagnostics';

CREATE FUNCTION fences_are_intact(description text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	findings text := _fence_finding_text(NULL);
BEGIN
	RETURN _fence_verdict(findings IS NULL,
		coalesce(description, 'Every fence of the database should be intact'), findings);
END
$$;
COMMENT ON FUNCTION fences_are_intact(text) IS
'asserts that lockfence.verify() finds nothing in the whole database. A table that lost its whole fence is noticed by fences_are() only, unless it has a token column';

-- ---------------------------------------------------------------- writes

CREATE FUNCTION refuses_stale(sql text, resource text, token bigint, description text DEFAULT NULL)
RETURNS text
LANGUAGE sql
AS $$
	SELECT _fence_refusal(_fence_attempt(sql, resource, token, true), 'LF001',
		coalesce(description, format('Stale token %s should be refused%s', token, ' for resource ' || resource)),
		'the statement wrote, or met no fence: see fence_is_intact() for its table')
$$;
COMMENT ON FUNCTION refuses_stale(text, text, bigint, text) IS
'asserts that a statement (or the name of a prepared one) is refused with LF001 under a token, once a newer grant has raised the mark of the resource above it. Resource null: a row fence, whose row is to hold a higher token. Everything is rolled back';

CREATE FUNCTION refuses_missing(sql text, description text DEFAULT NULL)
RETURNS text
LANGUAGE sql
AS $$
	SELECT CASE
		WHEN EXISTS (SELECT FROM lockfence.presented()) THEN _fence_verdict(false, d.description,
			'    this transaction has presented a token, so the statement would not be without one: test in another')
		ELSE _fence_refusal(_fence_attempt(sql, NULL, NULL, false), 'LF002', d.description,
			'the statement wrote without a token, or met no fence: see fence_is_intact() for its table')
		END
	FROM (SELECT coalesce(refuses_missing.description, 'A write without a token should be refused')) AS d (description)
$$;
COMMENT ON FUNCTION refuses_missing(text, text) IS
'asserts that a statement that shows no token is refused with LF002. It is rolled back';

CREATE FUNCTION accepts_token(sql text, resource text, token bigint, description text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	attempt record := _fence_attempt(sql, resource, token, false);
BEGIN
	RETURN _fence_verdict(attempt.state IS NULL AND (resource IS NULL OR attempt.is_fenced),
		coalesce(description, format('Token %s should be accepted%s', token, ' for resource ' || resource)),
		CASE
			WHEN attempt.state IS NOT NULL THEN concat(
				'      caught: ', attempt.state, ': ', attempt.message,
				E'\n      wanted: no exception',
				CASE WHEN attempt.state = 'LF001' THEN
					format(E'\n    the mark of the resource is %s', coalesce(_fence_mark(resource)::text, 'in the row')) END)
			ELSE format(E'    the statement ran, but met no fence of resource %s\n    see fence_is_intact() for its table, and the spelling of the resource',
				resource)
		END);
END
$$;
COMMENT ON FUNCTION accepts_token(text, text, bigint, text) IS
'asserts that a statement runs under a token, and that a fence of the resource has seen it. Resource null: a row fence. It is rolled back';

CREATE FUNCTION survives_zombie(target text, key jsonb, changes jsonb, description text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	asserted text := coalesce(description, format('A late holder should be refused by table %s, whichever way it comes', target));
	failures text;
	refused bigint;
BEGIN
	IF to_regclass(target) IS NULL THEN
		RETURN _fence_verdict(false, asserted, _fence_absence(target));
	END IF;
	BEGIN
		SELECT count(*) FILTER (WHERE d.verdict = 'refused'),
			string_agg(format(E'    %s: %s\n        %s', d.path,
				CASE d.verdict WHEN 'accepted' THEN 'a stale write passed'
					WHEN 'ignored' THEN 'no row was written, and no error told the late holder'
					ELSE format('something else than the fence stopped it: %s: %s', d.code, d.message) END,
				d.statement), E'\n') FILTER (WHERE d.verdict NOT IN ('refused', 'skipped'))
		INTO refused, failures
		FROM lockfence.drill(to_regclass(target), key, changes) d;
	EXCEPTION WHEN OTHERS THEN
		failures := format(E'    the drill could not be played: %s: %s', SQLSTATE, SQLERRM);
	END;
	RETURN _fence_verdict(failures IS NULL AND refused > 0, asserted, concat(failures,
		E'\n', coalesce(_fence_finding_text(to_regclass(target)), '    lockfence.verify() finds nothing')));
END
$$;
COMMENT ON FUNCTION survives_zombie(text, jsonb, jsonb, text) IS
'asserts that lockfence.drill() refuses a late holder on every path; the diagnostics are the statements that passed, and what lockfence.verify() finds. Example: survives_zombie(''batch'', ''{"batch_id": 9921}'', ''{"state": "settled"}'')';

-- ---------------------------------------------------------------- marks

CREATE FUNCTION mark_is(resource text, token bigint, description text DEFAULT NULL)
RETURNS text
LANGUAGE sql
AS $$
	SELECT _fence_verdict(_fence_mark(resource) IS NOT DISTINCT FROM token,
		coalesce(description, CASE WHEN token IS NULL THEN format('Resource %s should have no mark', resource)
			ELSE format('The mark of resource %s should be %s', resource, token) END),
		format(E'        have: %s\n        want: %s',
			coalesce(_fence_mark(resource)::text, 'no mark'), coalesce(token::text, 'no mark')))
$$;
COMMENT ON FUNCTION mark_is(text, bigint, text) IS
'asserts the mark of a resource; null: it has none';

CREATE FUNCTION mark_cmp_ok(resource text, operator text, token bigint, description text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	mark bigint := _fence_mark(resource);
	holds boolean;
BEGIN
	IF operator NOT IN ('=', '<>', '!=', '<', '<=', '>', '>=') THEN
		RAISE EXCEPTION 'mark_cmp_ok() does not know operator %', quote_nullable(operator)
			USING ERRCODE = 'invalid_parameter_value', HINT = 'Use one of: =, <>, <, <=, >, >=.';
	END IF;
	EXECUTE format('SELECT $1 %s $2', operator) INTO holds USING mark, token;
	RETURN _fence_verdict(coalesce(holds, false),
		coalesce(description, format('The mark of resource %s should be %s %s', resource, operator, token)),
		format(E'    %s\n        %s\n    %s', coalesce(mark::text, 'no mark'), operator, token));
END
$$;
COMMENT ON FUNCTION mark_cmp_ok(text, text, bigint, text) IS
'asserts a comparison of a resource''s mark with a token. Example: mark_cmp_ok(''settle:batch-9921'', ''>='', 43)';
