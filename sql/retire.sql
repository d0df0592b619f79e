-- ---------------------------------------------------------------- the end of the extension in a database

-- What else depends on the column, but for indexes on columns alone: changing its type would evaluate what a table's
-- owner has defined, or fail.
CREATE FUNCTION lockfence._users_of_column(target regclass, column_name name)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(DISTINCT lockfence._visible(pg_describe_object(d.classid, d.objid, d.objsubid)), ', ')
	FROM lockfence._family(target) f JOIN pg_attribute a ON a.attrelid = f.member AND a.attname = column_name
		JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
	WHERE NOT (d.classid = 'pg_class'::regclass AND EXISTS (
			SELECT FROM pg_index i WHERE i.indexrelid = d.objid AND i.indexprs IS NULL AND i.indpred IS NULL))
		AND NOT (d.classid = 'pg_constraint'::regclass AND EXISTS (
			SELECT FROM pg_constraint c WHERE c.oid = d.objid AND c.contype IN ('p', 'u', 'n')))
$$;
COMMENT ON FUNCTION lockfence._users_of_column(regclass, name) IS
'what depends on a column of a table, its partitions and children, so that its type cannot be changed without evaluating it; null: nothing';

CREATE FUNCTION lockfence._make_bigint(target regclass, column_name name)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	users text;
BEGIN
	-- so that nothing comes to depend on the column meanwhile
	EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', target);
	users := lockfence._users_of_column(target, column_name);
	IF users IS NOT NULL THEN
		RETURN format('Drop what depends on it (%s), have the table''s owner change its type to bigint, and create that again.', users);
	END IF;
	EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint', target, column_name);
	RETURN NULL;
EXCEPTION
	WHEN OTHERS THEN
		RETURN lockfence._visible(SQLERRM);
END
$$;
COMMENT ON FUNCTION lockfence._make_bigint(regclass, name) IS
'gives a token column of a table, its partitions and children the type bigint, which rewrites nothing; returns why it could not (null: it did)';

-- What is wrong with one table, by its owner's doing perhaps, keeps no other from being left as it was.
CREATE FUNCTION lockfence._call_for(target regclass, call text)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE call USING target;
	RETURN NULL;
EXCEPTION
	WHEN OTHERS THEN
		RETURN lockfence._visible(SQLERRM);
END
$$;
COMMENT ON FUNCTION lockfence._call_for(regclass, text) IS
'runs a statement whose parameter is a table; returns the error that has kept it from that (null: none)';

-- The members of the extensions have parts: array and row types, rules of views, indexes, triggers.  An extension that needs
-- them stands for its own members.
CREATE FUNCTION lockfence._remaining_users()
RETURNS SETOF text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE extension AS (
		SELECT oid FROM pg_extension WHERE extname IN ('lockfence', 'lockfence_lease')
	), own (classid, objid) AS (
		SELECT 'pg_extension'::regclass::oid, oid FROM extension
		UNION
		SELECT d.classid, d.objid FROM own o JOIN pg_depend d ON d.refclassid = o.classid AND d.refobjid = o.objid
		WHERE d.deptype IN ('a', 'i') OR d.deptype = 'e' AND d.refobjid IN (SELECT oid FROM extension)
	)
	SELECT DISTINCT lockfence._visible(pg_describe_object(d.classid, d.objid, d.objsubid))
	FROM own o JOIN pg_depend d ON d.refclassid = o.classid AND d.refobjid = o.objid
	WHERE d.deptype = 'n' AND (d.classid, d.objid) NOT IN (SELECT classid, objid FROM own)
		AND NOT EXISTS (
			SELECT FROM pg_depend m WHERE m.classid = d.classid AND m.objid = d.objid AND m.deptype = 'e')
$$;
COMMENT ON FUNCTION lockfence._remaining_users() IS
'what depends on the extension, or on lockfence_lease, and belongs to neither';

-- The fence of DDL goes first, since the rest is DDL.
CREATE FUNCTION lockfence.retire()
RETURNS TABLE (object text, done boolean, note text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	found_one record;
	reported text[] := '{}';
BEGIN
	IF EXISTS (SELECT FROM lockfence.ddl_fence) OR EXISTS (
		SELECT FROM pg_event_trigger WHERE evtfoid = 'lockfence.admit_ddl()'::regprocedure) THEN
		PERFORM lockfence.unfence_ddl();
		RETURN QUERY SELECT 'DDL', true, 'no longer fenced';
	END IF;
	FOR found_one IN SELECT f.target FROM lockfence.fences f WHERE NOT f.inherited GROUP BY f.target ORDER BY f.target::text LOOP
		object := format('table %s', lockfence._relation_name(found_one.target));
		note := lockfence._call_for(found_one.target, 'SELECT lockfence.detach($1)');
		done := note IS NULL;
		note := coalesce(note, 'detached');
		RETURN NEXT;
	END LOOP;
	IF to_regclass('lockfence.issuers') IS NOT NULL THEN
		FOR found_one IN EXECUTE 'SELECT i.target FROM lockfence.issuers i ORDER BY i.target::text' LOOP
			object := format('table %s', lockfence._relation_name(found_one.target));
			note := lockfence._call_for(found_one.target, 'SELECT lockfence.stop_issuing($1)');
			done := note IS NULL;
			note := coalesce(note, 'issues no more tokens');
			RETURN NEXT;
		END LOOP;
	END IF;
	FOR found_one IN
		SELECT a.attrelid::regclass AS target, a.attname,
			lockfence._visible(pg_describe_object('pg_class'::regclass, a.attrelid, a.attnum)) AS name
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE a.atttypid = 'lockfence.fence_token'::regtype AND NOT a.attisdropped AND a.attinhcount = 0
			AND c.relkind IN ('r', 'p') AND c.relnamespace <> 'lockfence'::regnamespace
		ORDER BY a.attrelid::regclass::text, a.attnum
	LOOP
		object := found_one.name;
		note := lockfence._make_bigint(found_one.target, found_one.attname);
		done := note IS NULL;
		note := coalesce(note, 'of type bigint now');
		reported := reported || object;
		RETURN NEXT;
	END LOOP;
	RETURN QUERY SELECT u.name, false, 'It depends on the extension: drop or change it.'
	FROM lockfence._remaining_users() AS u (name) WHERE u.name <> ALL (reported) ORDER BY u.name COLLATE "C";
END
$$;
COMMENT ON FUNCTION lockfence.retire() IS
'prepares DROP EXTENSION, so that it takes nothing with it that is not its own: takes the fences off tables and DDL, ends issuers, and makes token columns bigint, which rewrites no table. Returns what it did, and (done: false) what still depends on the extension and is left alone. For superusers';

REVOKE ALL ON FUNCTION
	lockfence.retire(), lockfence._users_of_column(regclass, name), lockfence._make_bigint(regclass, name),
	lockfence._call_for(regclass, text), lockfence._remaining_users()
FROM PUBLIC;
