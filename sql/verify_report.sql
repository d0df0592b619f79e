-- All findings, in an order in which the remedies can be run.

CREATE FUNCTION lockfence._verify_tables(tables regclass[])
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	relatives regclass[] := ARRAY(SELECT lockfence._relatives(tables));
	all_guards lockfence._guard[] := ARRAY(SELECT g FROM lockfence._guards(relatives) g);
	members lockfence._member[] := ARRAY(
		SELECT m FROM lockfence._members(relatives, all_guards) m WHERE m.member = ANY (tables));
	guards lockfence._guard[] := ARRAY(SELECT g FROM unnest(all_guards) g WHERE g.member = ANY (tables));
BEGIN
	RETURN QUERY
	SELECT f.target, f.severity, f.code, f.problem, f.remedy, f.advice
	FROM (
		SELECT 1, v.* FROM lockfence._verify_kin(members) v
		UNION ALL SELECT 2, v.* FROM lockfence._verify_neighbours(members, guards) v
		UNION ALL SELECT 3, v.* FROM lockfence._verify_token_column(members) v
		UNION ALL SELECT 4, v.* FROM lockfence._verify_placeholders(members) v
		UNION ALL SELECT 5, v.* FROM lockfence._verify_validator(members) v
		UNION ALL SELECT 6, v.* FROM lockfence._verify_unfenced(members) v
		UNION ALL SELECT 7, v.* FROM lockfence._verify_guard_names(members, guards) v
		UNION ALL SELECT 8, v.* FROM lockfence._verify_guard_contents(members, guards) v
		UNION ALL SELECT 9, v.* FROM lockfence._verify_guard_states(members, guards) v
		UNION ALL SELECT 10, v.* FROM lockfence._verify_choices(members) v
		UNION ALL SELECT 11, v.* FROM lockfence._verify_owners(members) v
		UNION ALL SELECT 12, v.* FROM lockfence._verify_record(members) v
		UNION ALL SELECT 13, v.* FROM lockfence._verify_marks(members) v
		UNION ALL SELECT 14, v.* FROM lockfence._verify_subscriptions(members) v
	) AS f (subject, target, severity, code, problem, remedy, advice)
	ORDER BY f.subject, array_position(tables, f.target), f.code, f.problem;
END
$$;
COMMENT ON FUNCTION lockfence._verify_tables(regclass[]) IS
'findings of verify() about tables, in an order in which the remedies can be run';

CREATE FUNCTION lockfence._verify_database()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.target, f.severity, f.code, f.problem, f.remedy, f.advice
	FROM (
		SELECT 1, v.* FROM lockfence._verify_mark_storage() v
		UNION ALL SELECT 2, v.* FROM lockfence._verify_mark_key() v
		UNION ALL SELECT 2, v.* FROM lockfence._verify_mark_hash() v
		UNION ALL SELECT 3, v.* FROM lockfence._verify_mark_guards() v
		UNION ALL SELECT 3, v.* FROM lockfence._verify_foreign_things() v
		UNION ALL SELECT 3, v.* FROM lockfence._verify_ddl_fence() v
		UNION ALL SELECT 4, v.* FROM lockfence._verify_mark_privileges() v
		UNION ALL SELECT 5, v.* FROM lockfence._verify_schema() v
		UNION ALL SELECT 6, v.* FROM lockfence._verify_functions() v
		UNION ALL SELECT 7, v.* FROM lockfence._verify_token_type() v
		UNION ALL SELECT 8, v.* FROM lockfence._verify_parameter_grants() v
		UNION ALL SELECT 9, v.* FROM lockfence._verify_settings() v
		UNION ALL SELECT 10, v.* FROM lockfence._verify_gate() v
		UNION ALL SELECT 11, v.* FROM lockfence._verify_statistics() v
		UNION ALL SELECT 12, v.* FROM lockfence._verify_default_validator() v
		UNION ALL SELECT 13, v.* FROM lockfence._verify_memory() v
		UNION ALL SELECT 14, v.* FROM lockfence._verify_mark_names() v
	) AS f (subject, target, severity, code, problem, remedy, advice)
	ORDER BY f.subject, f.code, f.problem
$$;
COMMENT ON FUNCTION lockfence._verify_database() IS
'findings of verify() about the extension and the database';

-- Of lockfence_lease, which may not be there.
CREATE FUNCTION lockfence._verify_lock_tables(target regclass)
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF to_regprocedure('lockfence._verify_issuers(regclass)') IS NOT NULL THEN
		RETURN QUERY EXECUTE 'SELECT * FROM lockfence._verify_issuers($1)' USING target;
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._verify_lock_tables(regclass) IS
'findings of verify() about lock tables that issue tokens';

-- Parents come first, since the remedy of a parent can mend its partitions.  Each finding is one line, whatever names it
-- contains; text that is not on one line is not a remedy.  JIT is off, since compiling these queries takes far longer
-- than running them.
CREATE FUNCTION lockfence.verify(target regclass DEFAULT NULL)
RETURNS TABLE (target regclass, severity text, code text, problem text, remedy text, advice text)
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
	SELECT v.target, v.severity, v.code, lockfence._visible(v.problem),
		CASE WHEN v.remedy = lockfence._visible(v.remedy) THEN v.remedy END, lockfence._visible(v.advice)
	FROM (
		SELECT t.* FROM lockfence._verify_tables(ARRAY(
			SELECT lockfence._families(CASE WHEN verify.target IS NULL THEN ARRAY(SELECT lockfence._fenced_tables())
				ELSE ARRAY[verify.target] END))) t
		UNION ALL
		SELECT l.* FROM lockfence._verify_lock_tables(verify.target) l
		UNION ALL
		SELECT d.* FROM lockfence._verify_database() d
	) AS v
$$;
COMMENT ON FUNCTION lockfence.verify(regclass) IS
'what is wrong with a table''s fence (null: with every fence), its partitions and children, and with the extension in this database; no rows: nothing. severity: error, a stale write can pass; warning, a role could let one pass, or valid writes fail; info, declared so. remedy is SQL that closes the gap and can be run without being read, parents first; advice says what to decide. Example: SELECT remedy FROM lockfence.verify() WHERE severity = ''error'' AND remedy IS NOT NULL';
