-- ---------------------------------------------------------------- names that no fence can make

CREATE FUNCTION lockfence._check_name(resource text)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_check_name';
COMMENT ON FUNCTION lockfence._check_name(text) IS
'fails for the name that refusals show for a row of a row fence, and warns of a name that no fence of the database can make';

CREATE FUNCTION lockfence._is_named(resource text)
RETURNS boolean
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_is_named';
COMMENT ON FUNCTION lockfence._is_named(text) IS
'whether a fence of the database can make a resource name, or the database has no fences';

REVOKE ALL ON FUNCTION lockfence._check_name(text) FROM PUBLIC;

-- A million names take about a second; more are not looked at.
CREATE FUNCTION lockfence._verify_mark_names()
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	names text[];
BEGIN
	IF NOT coalesce(has_table_privilege(to_regclass('lockfence.mark')::oid, 'SELECT'), false) THEN
		RETURN;
	END IF;
	names := ARRAY(
		SELECT m.resource FROM (SELECT resource FROM lockfence.mark LIMIT 1000000) m
		WHERE NOT lockfence._is_named(m.resource) LIMIT 4);
	IF names <> '{}' THEN
		RETURN QUERY
		SELECT NULL::regclass, 'info', 'mark_unnamed',
			format('No fence can make the names of some marks, which therefore refuse no write to a table: %s%s.', (
				SELECT string_agg(format('"%s"', n.name), ', ' ORDER BY n.place)
				FROM unnest(names[:3]) WITH ORDINALITY AS n (name, place)),
				CASE WHEN cardinality(names) > 3 THEN ', and others' END),
			NULL, 'Compare the names with lockfence.fences. One that an application has mistyped has to be put right there; marks of fences that are gone, and of names that are presented without a fence, can stay.';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._verify_mark_names() IS
'findings of verify(): marks whose names no fence makes';
