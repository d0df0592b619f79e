-- ---------------------------------------------------------------- what others named

CREATE FUNCTION lockfence._visible(written text)
RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_visible_sql';
COMMENT ON FUNCTION lockfence._visible(text) IS
'a text on one line: control characters, and those that turn the direction of writing, as their numbers';

CREATE FUNCTION lockfence._identifier(name text)
RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_identifier';
COMMENT ON FUNCTION lockfence._identifier(text) IS
'a name as SQL takes it, quoted as far as it has to be, without a control character';

CREATE FUNCTION lockfence._literal(value text)
RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_literal';
COMMENT ON FUNCTION lockfence._literal(text) IS
'a text as an SQL literal, without a control character; its value does not depend on standard_conforming_strings';

-- A table by itself is named without its schema wherever the search path finds it.
CREATE FUNCTION lockfence._relation_name(relation regclass)
RETURNS text
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT concat_ws('.', lockfence._identifier(n.nspname), lockfence._identifier(c.relname))
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.oid = relation
$$;
COMMENT ON FUNCTION lockfence._relation_name(regclass) IS
'a relation as SQL takes it, with its schema; null if there is none';

-- The input of regclass knows no Unicode escapes.
CREATE FUNCTION lockfence._relation_literal(relation regclass)
RETURNS text
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT lockfence._literal(format('%I.%I', n.nspname, c.relname))
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.oid = relation
$$;
COMMENT ON FUNCTION lockfence._relation_literal(regclass) IS
'a relation, with its schema, as a literal of type regclass; null if there is none';
