-- ---------------------------------------------------------------- fences

CREATE FUNCTION lockfence.guard_row() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_guard_row';
COMMENT ON FUNCTION lockfence.guard_row() IS
'guard of a fenced table, BEFORE INSERT OR UPDATE OR DELETE FOR EACH ROW; created by attach()';

CREATE FUNCTION lockfence.guard_statement() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_guard_statement';
COMMENT ON FUNCTION lockfence.guard_statement() IS
'guard of a table with a constant resource, BEFORE INSERT OR UPDATE OR DELETE FOR EACH STATEMENT; created by attach()';

CREATE FUNCTION lockfence.guard_truncate() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_guard_truncate';
COMMENT ON FUNCTION lockfence.guard_truncate() IS
'guard of a fenced table, BEFORE TRUNCATE; created by attach()';

REVOKE ALL ON FUNCTION
	lockfence.guard_row(), lockfence.guard_statement(), lockfence.guard_truncate()
FROM PUBLIC;

CREATE FUNCTION lockfence.fence_settings(
	arguments bytea,
	OUT resource text, OUT token_column text, OUT accept text, OUT enforcement text,
	OUT missing text, OUT repeat text, OUT validator regprocedure,
	OUT advisory_since timestamp with time zone)
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_fence_settings';
COMMENT ON FUNCTION lockfence.fence_settings(bytea) IS
'the settings that a guard''s arguments (pg_trigger.tgargs) declare; an error if the arguments are not valid';

CREATE FUNCTION lockfence.template_columns(template text)
RETURNS text[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_template_columns';
COMMENT ON FUNCTION lockfence.template_columns(text) IS
'the columns that a resource template names in braces, in their order; an error if a brace is out of place';

CREATE FUNCTION lockfence._placeholders(template text)
RETURNS text[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_placeholders';
COMMENT ON FUNCTION lockfence._placeholders(text) IS
'template_columns(), with null instead of an error';

CREATE FUNCTION lockfence.resource_of(target regclass, target_row record)
RETURNS text
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_resource_of';
COMMENT ON FUNCTION lockfence.resource_of(regclass, record) IS
'the resource that a row of a fenced table belongs to; null on a row fence or an unfenced table. Example: SELECT lockfence.resource_of(''batch'', b) FROM batch b';

-- The table itself, its partitions and the tables that inherit from it.
CREATE FUNCTION lockfence._family(target regclass)
RETURNS TABLE (member regclass, depth integer)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE family AS (
		SELECT target::oid AS relid, 0 AS depth
		UNION
		SELECT i.inhrelid, f.depth + 1
		FROM family f JOIN pg_inherits i ON i.inhparent = f.relid
	)
	SELECT relid::regclass, max(depth) FROM family GROUP BY relid ORDER BY 2, 1
$$;
COMMENT ON FUNCTION lockfence._family(regclass) IS
'a table with its partitions and inheritance children, parents first';

-- A guard is known by its function: every owner can give a trigger any name, and rename a guard.
CREATE FUNCTION lockfence._is_guard(function oid)
RETURNS boolean
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_is_guard';
COMMENT ON FUNCTION lockfence._is_guard(oid) IS
'whether triggers of the function are guards of a fenced table';

-- Those are lockfence_lease's, which may not be there.
CREATE FUNCTION lockfence._is_issuer(target regclass)
RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	on_record boolean;
BEGIN
	IF to_regclass('lockfence.issuer') IS NULL THEN
		RETURN false;
	END IF;
	EXECUTE 'SELECT EXISTS (SELECT FROM lockfence.issuer i WHERE i.target::oid = $1)' INTO on_record USING target;
	RETURN on_record OR EXISTS (
		SELECT FROM pg_trigger t WHERE t.tgrelid = target AND t.tgfoid = to_regprocedure('lockfence.issue_row()'));
END
$$;
COMMENT ON FUNCTION lockfence._is_issuer(regclass) IS
'whether a table is a lock table that issues tokens, or is on record as one';

CREATE FUNCTION lockfence._argument_list(arguments bytea, number integer)
RETURNS text[]
LANGUAGE c IMMUTABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_argument_list';
COMMENT ON FUNCTION lockfence._argument_list(bytea, integer) IS
'a trigger''s arguments (pg_trigger.tgargs and tgnargs); null if they are not text, of another number, or longer than a guard''s can be';

-- As text: nothing that was declared is looked up.
CREATE FUNCTION lockfence._declared(
	arguments text[],
	OUT resource text, OUT token_column text, OUT accept text, OUT enforcement text,
	OUT missing text, OUT repeat text, OUT validator text,
	OUT advisory_since timestamp with time zone,
	OUT settings jsonb, OUT fault text)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'lockfence_declared';
COMMENT ON FUNCTION lockfence._declared(text[]) IS
'the settings that a guard''s arguments declare, as far as they are valid; the same as an object, without defaults; and why they declare no fence, null if they do';

CREATE FUNCTION lockfence._arguments(settings jsonb)
RETURNS text[]
LANGUAGE c IMMUTABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_arguments';
COMMENT ON FUNCTION lockfence._arguments(jsonb) IS
'a fence''s settings as the arguments of its triggers, without defaults; an error if a setting has a value that it cannot have';

CREATE FUNCTION lockfence._is_validator(function oid)
RETURNS boolean
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_is_validator';
COMMENT ON FUNCTION lockfence._is_validator(oid) IS
'whether a function takes a resource and a token and returns boolean, as a validator does';

-- null: there is none, or the text is not a signature; 0: the current role may not use
-- its schema.
CREATE FUNCTION lockfence._find_validator(signature text)
RETURNS regprocedure
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN to_regprocedure(signature);
EXCEPTION
	WHEN insufficient_privilege THEN
		RETURN 0;
	WHEN data_exception OR syntax_error_or_access_rule_violation OR invalid_schema_name
		OR feature_not_supported OR program_limit_exceeded THEN
		RETURN NULL;
END
$$;
COMMENT ON FUNCTION lockfence._find_validator(text) IS
'the function that a fence names as its validator';

CREATE VIEW lockfence.fences AS
SELECT c.oid::pg_catalog.regclass AS target,
	CASE
		WHEN s.accept IS NULL THEN NULL
		WHEN s.resource IS NULL THEN 'row'
		WHEN pg_catalog.cardinality(lockfence._placeholders(s.resource)) OPERATOR(pg_catalog.=) 0
			THEN 'constant'
		ELSE 'template'
	END AS kind,
	s.resource, s.token_column, s.accept, s.enforcement, s.missing, s.repeat, s.validator,
	s.advisory_since,
	EXISTS (
		SELECT FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_trigger p
			ON p.tgrelid OPERATOR(pg_catalog.=) i.inhparent
		WHERE i.inhrelid OPERATOR(pg_catalog.=) c.oid
			AND p.tgfoid OPERATOR(pg_catalog.=) t.tgfoid
	) AS inherited,
	(
		SELECT pg_catalog.jsonb_object_agg(g.tgname,
			CASE g.tgenabled WHEN 'A' THEN 'always' WHEN 'O' THEN 'origin'
				WHEN 'R' THEN 'replica' ELSE 'disabled' END)
		FROM pg_catalog.pg_trigger g
		WHERE g.tgrelid OPERATOR(pg_catalog.=) c.oid AND lockfence._is_guard(g.tgfoid)
	) AS triggers,
	EXISTS (
		SELECT FROM lockfence.fenced f WHERE f.target OPERATOR(pg_catalog.=) c.oid
	) AS on_record
FROM pg_catalog.pg_trigger t
	JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
	LEFT JOIN LATERAL (
		SELECT d.resource, d.token_column, d.accept, d.enforcement, d.missing, d.repeat, v.validator, d.advisory_since
		FROM lockfence._declared(lockfence._argument_list(t.tgargs, t.tgnargs)) d
			CROSS JOIN LATERAL lockfence._find_validator(d.validator) AS v (validator)
		WHERE d.fault IS NULL AND (d.validator IS NULL OR v.validator OPERATOR(pg_catalog.<>) 0)
	) AS s ON true
WHERE t.tgfoid OPERATOR(pg_catalog.=) ANY (ARRAY[
	'lockfence.guard_row()'::pg_catalog.regprocedure::pg_catalog.oid,
	'lockfence.guard_statement()'::pg_catalog.regprocedure::pg_catalog.oid]);
COMMENT ON VIEW lockfence.fences IS
'every fenced table with its settings, whether it has them from a parent, the state of its triggers (all should be "always"), and whether it is on record; if not, a named fence is sealed';
GRANT SELECT ON lockfence.fences TO PUBLIC;
