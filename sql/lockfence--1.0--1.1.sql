\echo Use "ALTER EXTENSION lockfence UPDATE TO '1.1'" to load this file. \quit

-- ---------------------------------------------------------------- marks

-- Only for speed: what it leads to is checked, and the primary key decides.
CREATE INDEX mark_hash ON lockfence.mark USING hash (resource);
COMMENT ON INDEX lockfence.mark_hash IS
'by which the fence finds a mark quicker than by the primary key, which decides where this one is missing';

-- ---------------------------------------------------------------- the timeline gate

ALTER TABLE lockfence.state DROP CONSTRAINT state_is_valid;
ALTER TABLE lockfence.state ADD CONSTRAINT state_is_valid CHECK (
	(name OPERATOR(pg_catalog.=) 'epoch' AND value BETWEEN 0 AND 32767) OR
	(name OPERATOR(pg_catalog.=) ANY (ARRAY['floor', 'minimum']) AND value OPERATOR(pg_catalog.>) 0) OR
	(pg_catalog.starts_with(name, 'timeline:') AND value BETWEEN 1 AND 4294967295));
COMMENT ON TABLE lockfence.state IS
'what holds for every resource: the current epoch (no row: any); the minimum, a token below which none is accepted since reopen(); the floor, a token that stands for marks folded by prune() (no row: none); and, under the name of the cluster''s system identifier, the timeline that the fence has on record';

-- Not the timeline: it is true of these files only, and not of a database that a dump makes.
SELECT pg_catalog.pg_extension_config_dump('lockfence.state',
	'WHERE NOT pg_catalog.starts_with(name, ''timeline:'')');

CREATE OR REPLACE FUNCTION lockfence.merge_state() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF starts_with(new.name, 'timeline:') THEN
		RETURN NULL;
	END IF;
	UPDATE lockfence.state s SET value = greatest(s.value, new.value) WHERE s.name = new.name;
	IF FOUND THEN
		RETURN NULL;
	END IF;
	RETURN new;
END
$$;
COMMENT ON FUNCTION lockfence.merge_state() IS
'trigger of lockfence.state: of a value that is there and one that comes, as by a data restore, the higher one counts; what comes says nothing of the timeline';

CREATE OR REPLACE FUNCTION lockfence.reset_floor(token lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint := lockfence._set_state('floor', token);
	minimum bigint := (SELECT value FROM lockfence.state WHERE name = 'minimum');
BEGIN
	PERFORM lockfence._log('reset_floor', NULL, before, token, reason);
	IF token IS NULL OR token < minimum THEN
		PERFORM lockfence._set_state('minimum', token);
	END IF;
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.reset_floor(lockfence.fence_token, text) IS
'sets the floor that stands for folded marks (null: none), for when prune() folded a poisoned one, and lowers that of reopen() to it if it is higher; returns the one before. Logged with the reason';

CREATE FUNCTION lockfence.gate(
	OUT state text, OUT recorded_timeline bigint, OUT timeline bigint, OUT event text, OUT left_at pg_lsn,
	OUT reason text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_gate';
COMMENT ON FUNCTION lockfence.gate() IS
'whether the database''s history has gone back. state: open; sealed, every write to a fenced table is LF005; changed, a change was let pass and is about to go on record; standby; off, nothing is on record. The timeline on record and the current one; how it changed, where the old one was left, and why, as PostgreSQL''s history says it';

CREATE FUNCTION lockfence._record_timeline()
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_record_timeline';
COMMENT ON FUNCTION lockfence._record_timeline() IS
'puts the current timeline on record; returns the one before, or null';

CREATE FUNCTION lockfence.reopen(floor lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint;
	current_epoch bigint;
	highest record;
BEGIN
	IF floor IS NULL OR floor <= 0 THEN
		RAISE EXCEPTION 'the floor must be a token'
			USING ERRCODE = 'LF003', DETAIL = 'A token is always greater than zero.',
				HINT = 'Name a token above every one that the lock service has issued so far.';
	END IF;
	PERFORM lockfence._record_timeline();
	before := lockfence._set_state('minimum', floor);
	IF before > floor THEN
		RAISE EXCEPTION 'the floor cannot go back from % to %', before, floor
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Holders that it keeps out must stay out. Use lockfence.reset_floor() if it is wrong.';
	END IF;
	SELECT m.resource, m.token INTO highest FROM lockfence.mark m ORDER BY m.token DESC LIMIT 1;
	IF highest.token > floor THEN
		RAISE EXCEPTION 'the floor % is too low', floor
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('The mark of resource "%s" is %s: higher tokens have been issued.',
					highest.resource, highest.token),
				HINT = 'Name a token above every one that the lock service has issued so far, or put a poisoned mark right by lockfence.reset_mark().';
	END IF;
	SELECT value INTO current_epoch FROM lockfence.state WHERE name = 'epoch';
	IF lockfence.token_epoch(floor) > current_epoch THEN
		RAISE EXCEPTION 'the floor % is of epoch %, and the current epoch is %', floor,
			lockfence.token_epoch(floor), current_epoch
			USING ERRCODE = 'LF004',
				HINT = format('If the lock service has raised its epoch, call lockfence.set_epoch(%s, reason) first.',
					lockfence.token_epoch(floor));
	END IF;
	PERFORM lockfence._log('reopen', NULL, before, floor, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.reopen(lockfence.fence_token, text) IS
'after the database went back: lets writes pass again (see LF005), from a token that is above every one issued so far. What is lower is stale for every resource from then on, of whatever kind of fence; returns the floor before (null: none). Also where nothing is sealed, as after a raw snapshot, which cannot be noticed. Logged with the reason';

REVOKE ALL ON FUNCTION
	lockfence._record_timeline(), lockfence.reopen(lockfence.fence_token, text)
FROM PUBLIC;

SELECT lockfence._record_timeline();

-- ---------------------------------------------------------------- statistics

DROP VIEW lockfence.stats;
DROP FUNCTION lockfence._stats();

CREATE FUNCTION lockfence._stats(
	OUT database oid, OUT relid oid, OUT accepted bigint, OUT advanced bigint, OUT stale bigint,
	OUT missing bigint, OUT invalid bigint, OUT unknown_epoch bigint, OUT conflicting bigint,
	OUT unvalidated bigint, OUT unfenceable bigint, OUT unprotected bigint, OUT advisory bigint,
	OUT advisory_stale bigint, OUT bypassed bigint, OUT preempted bigint,
	OUT validator_calls bigint, OUT validator_failures bigint, OUT sealed bigint,
	OUT unavailable bigint, OUT validator_open bigint,
	OUT log_suppressed bigint, OUT last_used timestamp with time zone)
RETURNS SETOF record
LANGUAGE c VOLATILE ROWS 100
AS 'MODULE_PATHNAME', 'lockfence_stats_rows_1_1';
COMMENT ON FUNCTION lockfence._stats() IS
'the counters of every table of every database that has any; no rows without shared memory';

CREATE VIEW lockfence.stats AS
SELECT c.oid::pg_catalog.regclass AS target,
	s.accepted, s.advanced, s.stale, s.missing, s.invalid, s.unknown_epoch, s.sealed, s.conflicting,
	s.unvalidated, s.unfenceable, s.unprotected, s.advisory, s.advisory_stale, s.bypassed, s.preempted,
	s.validator_calls, s.validator_failures, s.unavailable, s.validator_open,
	s.log_suppressed, s.last_used
FROM lockfence._stats() s
	JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.database
	LEFT JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) s.relid
WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
	AND (s.relid OPERATOR(pg_catalog.=) 0 OR c.oid IS NOT NULL);
COMMENT ON VIEW lockfence.stats IS
'what the fences of this database have decided, by table; a null target counts present(). Survives rollback, not a restart';

GRANT SELECT ON lockfence.stats TO PUBLIC;

-- ---------------------------------------------------------------- verification

CREATE OR REPLACE FUNCTION lockfence._verify_functions()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH own AS MATERIALIZED (
		SELECT p.oid::regprocedure AS routine, p.*
		FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
			JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
		WHERE e.extname = 'lockfence'
	)
	SELECT NULL::regclass, 'warning', c.code, format('PUBLIC may execute %s: %s', o.routine, c.problem),
		format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC;', o.routine)
	FROM own o JOIN (VALUES
			('present_is_public', 'any role can raise any mark, and so lock every holder out.', ARRAY[
				'present', 'guarded_update', 'guarded_delete', 'guard_row', 'guard_statement', 'guard_truncate']),
			('admin_is_public', 'any role can move marks.', ARRAY[
				'raise_mark', 'reset_mark', 'set_epoch', 'reset_floor', 'reopen', 'prune', 'reconcile', 'guard_mark',
				'guard_marks', 'merge_state', 'state_changed', '_raise_mark', '_reset_mark', '_fold_mark',
				'_record_timeline', '_log', '_set_state'])
		) AS c (code, problem, names) ON o.proname = ANY (c.names)
	WHERE EXISTS (
		SELECT FROM aclexplode(coalesce(o.proacl, acldefault('f', o.proowner))) AS a
		WHERE a.grantee = 0 AND a.privilege_type = 'EXECUTE')
	UNION ALL
	SELECT NULL, 'error', 'guard_function',
		format('%s is not the function that the extension made: the guards do something else.', o.routine),
		format(E'CREATE OR REPLACE FUNCTION %s RETURNS trigger LANGUAGE c AS ''$libdir/lockfence'', ''lockfence_%s'';',
			o.routine, o.proname)
	FROM own o
	WHERE o.proname IN ('guard_row', 'guard_statement', 'guard_truncate', 'guard_mark', 'guard_marks', 'state_changed')
		AND (o.prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')
			OR o.prosrc <> 'lockfence_' || o.proname)
	UNION ALL
	SELECT NULL, 'warning', 'function_owner',
		format('%s is owned by "%s", who can replace it.', o.routine, pg_get_userbyid(o.proowner)),
		format('ALTER FUNCTION %s OWNER TO %I;', o.routine, lockfence._superuser())
	FROM own o JOIN pg_roles r ON r.oid = o.proowner
	WHERE NOT r.rolsuper
$$;
COMMENT ON FUNCTION lockfence._verify_functions() IS
'findings of verify(): functions of the extension that others can call or have changed';

CREATE FUNCTION lockfence._verify_mark_hash()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid::regclass, 'info', 'mark_hash',
		format('lockfence.mark_hash %s: marks that are not cached are found more slowly, by the primary key.', p.problem),
		CASE WHEN i.indexrelid IS NULL THEN '' ELSE E'DROP INDEX lockfence.mark_hash;\n' END
			|| 'CREATE INDEX mark_hash ON lockfence.mark USING hash (resource);'
	FROM lockfence._own_class('mark') c
		LEFT JOIN lockfence._own_class('mark_hash') k ON true
		LEFT JOIN pg_index i ON i.indexrelid = k.oid AND i.indrelid = c.oid
		LEFT JOIN pg_am m ON m.oid = k.relam
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'resource' AND NOT a.attisdropped
		CROSS JOIN LATERAL (
			SELECT CASE
				WHEN i.indexrelid IS NULL THEN 'is not an index of lockfence.mark'
				WHEN m.amname <> 'hash' OR i.indkey::text <> a.attnum::text OR i.indpred IS NOT NULL
					THEN 'is not a hash index on resource'
				WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN 'is not valid'
			END
		) AS p (problem)
	WHERE p.problem IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._verify_mark_hash() IS
'findings of verify(): the index that makes reading a mark quicker';

CREATE FUNCTION lockfence._verify_gate()
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 2
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF to_regclass('lockfence.state') IS NULL THEN
		RETURN;
	END IF;
	RETURN QUERY
	WITH gate AS MATERIALIZED (
		SELECT *, format('The database went from timeline %s to %s (%s)', recorded_timeline, timeline,
			concat_ws(': ', event, nullif(reason, ''))) AS change,
			'ask the lock service for the highest token it has issued, and call lockfence.reopen() with a higher one and a reason.' AS act
		FROM lockfence.gate()
	)
	SELECT NULL::regclass, 'warning', 'sealed', change || ', and every write to a fenced table is refused.',
		'-- To go on, ' || act
	FROM gate WHERE state = 'sealed'
	UNION ALL
	SELECT NULL, 'warning', 'timeline_changed', change || ': marks may have gone back, and the next write goes on.',
		'-- Unless no acknowledged commit was lost, ' || act
	FROM gate WHERE state = 'changed' AND event <> 'other system'
	UNION ALL
	SELECT NULL, 'info', 'timeline_changed',
		'The timeline on record is another cluster''s, as after pg_upgrade. The next write puts this one''s on record.',
		'SELECT lockfence._record_timeline();'
	FROM gate WHERE state = 'changed' AND event = 'other system'
	UNION ALL
	SELECT NULL, 'warning', 'timeline_unknown',
		'No timeline is on record: that the database goes back in time would not be noticed.',
		'SELECT lockfence._record_timeline();'
	FROM gate WHERE state = 'off'
	UNION ALL
	SELECT NULL, 'info', 'timeline_ignored',
		format('lockfence.on_timeline_change is %s: a database that goes back in time lets outdated holders in.', s.setting),
		E'ALTER SYSTEM RESET lockfence.on_timeline_change;\nSELECT pg_reload_conf();'
	FROM gate, current_setting('lockfence.on_timeline_change') AS s (setting)
	WHERE s.setting IN ('warn', 'ignore');
END
$$;
COMMENT ON FUNCTION lockfence._verify_gate() IS
'findings of verify(): the database''s history went back, or would not be noticed to';

-- pg_parameter_acl exists from PostgreSQL 15.
CREATE OR REPLACE FUNCTION lockfence._verify_parameter_grants()
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF to_regclass('pg_parameter_acl') IS NULL THEN
		RETURN;
	END IF;
	RETURN QUERY EXECUTE $query$
		SELECT NULL::regclass, 'warning', s.code,
			format('%s has %s on parameter %s: %s',
				lockfence._grantee(a.grantee), a.privilege_type, p.parname, s.problem),
			format('REVOKE %s ON PARAMETER %s FROM %s;', a.privilege_type, p.parname, lockfence._grantee(a.grantee))
		FROM pg_parameter_acl p CROSS JOIN aclexplode(p.paracl) AS a
			JOIN (VALUES
				('session_replication_role', 'replica_role_grant', 'it can keep triggers that are not ALWAYS from firing.'),
				('lockfence.bypass', 'bypass_grant', 'it can write past every fence.'),
				('lockfence.preempt', 'preempt_grant', 'it can end other roles'' transactions.'),
				('lockfence.validator', 'validator_grant', 'it can raise marks to tokens that nobody was asked about.')
			) AS s (name, code, problem) ON s.name = p.parname
		WHERE lockfence._is_outsider(a.grantee, 10)
	$query$;
END
$$;
CREATE FUNCTION lockfence._verify_default_validator()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'warning', v.code, format(v.problem, s.signature),
		'-- Set lockfence.validator where it is set now: to a function that there is, or to nothing.'
	FROM nullif(current_setting('lockfence.validator', true), '') AS s (signature)
		CROSS JOIN LATERAL lockfence._find_validator(s.signature) AS f (validator)
		LEFT JOIN pg_proc p ON p.oid = f.validator
		JOIN (VALUES
			('default_validator_missing', 'lockfence.validator names %s, which does not exist: no mark is raised.'),
			('default_validator_unfit',
				'lockfence.validator names %s, which is not a function of a resource and a token that returns boolean: no mark is raised.')
		) AS v (code, problem) ON v.code = CASE
			WHEN f.validator IS NULL THEN 'default_validator_missing'
			WHEN p.prokind <> 'f' OR p.proretset OR p.prorettype <> 'boolean'::regtype
				OR p.pronargs <> 2 OR p.proargtypes[0] <> 'text'::regtype
				OR p.proargtypes[1] NOT IN ('lockfence.fence_token'::regtype, 'bigint'::regtype)
				THEN 'default_validator_unfit' END
	WHERE s.signature IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._verify_default_validator() IS
'findings of verify(): a default validator that cannot be asked';

CREATE OR REPLACE FUNCTION lockfence._verify_database()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.target, f.severity, f.code, f.problem, f.remedy
	FROM (
		SELECT 1, v.* FROM lockfence._verify_mark_storage() v
		UNION ALL SELECT 2, v.* FROM lockfence._verify_mark_key() v
		UNION ALL SELECT 2, v.* FROM lockfence._verify_mark_hash() v
		UNION ALL SELECT 3, v.* FROM lockfence._verify_mark_guards() v
		UNION ALL SELECT 4, v.* FROM lockfence._verify_mark_privileges() v
		UNION ALL SELECT 5, v.* FROM lockfence._verify_schema() v
		UNION ALL SELECT 6, v.* FROM lockfence._verify_functions() v
		UNION ALL SELECT 7, v.* FROM lockfence._verify_token_type() v
		UNION ALL SELECT 8, v.* FROM lockfence._verify_parameter_grants() v
		UNION ALL SELECT 9, v.* FROM lockfence._verify_settings() v
		UNION ALL SELECT 10, v.* FROM lockfence._verify_gate() v
		UNION ALL SELECT 11, v.* FROM lockfence._verify_statistics() v
		UNION ALL SELECT 12, v.* FROM lockfence._verify_default_validator() v
	) AS f (subject, target, severity, code, problem, remedy)
	ORDER BY f.subject, f.code, f.problem
$$;
COMMENT ON FUNCTION lockfence._verify_database() IS
'findings of verify() about the extension and the database';

-- Rows are looked at, but only a few of a table, and neither for long nor where that is not allowed.
CREATE FUNCTION lockfence._lacks_marks(member regclass, token_column text)
RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
	lacks boolean;
BEGIN
	IF NOT (has_table_privilege(member, 'SELECT') AND has_table_privilege('lockfence.mark', 'SELECT')
		AND has_table_privilege('lockfence.state', 'SELECT')) THEN
		RETURN false;
	END IF;
	EXECUTE format(
		'SELECT EXISTS ('
		'	SELECT FROM (SELECT lockfence.resource_of(%1$L, t) AS resource, t.%2$I AS token FROM ONLY %1$s t LIMIT 100) s'
		'	WHERE s.resource IS NOT NULL'
		'		AND s.token > (SELECT coalesce(max(value), 0) FROM lockfence.state WHERE name IN (''floor'', ''minimum''))'
		'		AND NOT EXISTS (SELECT FROM lockfence.mark m WHERE m.resource = s.resource))',
		member, token_column) INTO lacks;
	RETURN lacks;
EXCEPTION WHEN OTHERS THEN
	RETURN false;
END
$$;
COMMENT ON FUNCTION lockfence._lacks_marks(regclass, text) IS
'whether a row carries a token whose resource has no mark, as far as a few rows show';

CREATE FUNCTION lockfence._verify_marks(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT m.root, 'error', 'marks_missing',
		format('Rows of %s carry tokens of resources that have no mark, as after a restore without lockfence.mark: stale tokens pass.',
			m.root),
		format('SELECT lockfence.reconcile(%L);', m.root)
	FROM unnest(members) m JOIN pg_class c ON c.oid = m.member
	WHERE m.is_guarded AND c.relkind = 'r' AND m.settings ?& ARRAY['resource', 'token_column']
		AND lockfence._lacks_marks(m.member, m.settings ->> 'token_column')
$$;
COMMENT ON FUNCTION lockfence._verify_marks(lockfence._member[]) IS
'findings of verify(): marks that did not come with the rows';

CREATE OR REPLACE FUNCTION lockfence._verify_tables(tables regclass[])
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
	SELECT f.target, f.severity, f.code, f.problem, f.remedy
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
		UNION ALL SELECT 12, v.* FROM lockfence._verify_marks(members) v
	) AS f (subject, target, severity, code, problem, remedy)
	ORDER BY f.subject, array_position(tables, f.target), f.code, f.problem;
END
$$;
COMMENT ON FUNCTION lockfence._verify_tables(regclass[]) IS
'findings of verify() about tables, in an order in which the remedies can be run';

CREATE FUNCTION lockfence._light_holders(resource text)
RETURNS integer[]
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'lockfence_light_holders';
COMMENT ON FUNCTION lockfence._light_holders(text) IS
'processes whose transactions hold a resource without a lock that pg_locks shows';

-- 19526 is the class of lockfence's locks, see prepared_holds.
CREATE FUNCTION lockfence.holders(resource text)
RETURNS TABLE (pid integer)
LANGUAGE sql VOLATILE STRICT ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT unnest(lockfence._light_holders(resource))
	UNION
	SELECT l.pid
	FROM pg_database d
		CROSS JOIN hashtextextended(resource COLLATE "C", d.oid::bigint) AS h
		JOIN pg_locks l ON l.locktype = 'advisory' AND l.objsubid = 19526 AND l.database = d.oid
			AND l.classid::bigint = (h >> 32) & 4294967295 AND l.objid::bigint = h & 4294967295
	WHERE d.datname = current_database() AND l.granted AND l.mode = 'ShareLock'
$$;
COMMENT ON FUNCTION lockfence.holders(text) IS
'processes whose transactions were accepted at the mark of a resource, and hold it to their end; null: a prepared transaction, see prepared_holds. Not those that raise the mark at this moment, or hold it by its row. Example: SELECT a.* FROM lockfence.holders(''settle:batch-9921'') h JOIN pg_stat_activity a USING (pid)';

-- ---------------------------------------------------------------- the drill

CREATE OR REPLACE FUNCTION lockfence._set_stage(target regclass, condition text)
RETURNS lockfence._stage
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	stage lockfence._stage;
	template text;
	stored bigint;
BEGIN
	stage.target := target;
	SELECT true, f.resource, f.resource IS NULL, f.accept = 'presented', f.token_column
	INTO stage.is_fenced, template, stage.is_row_fence, stage.takes_presented_only, stage.token_column
	FROM lockfence.fences f WHERE f.target = _set_stage.target;
	IF NOT FOUND THEN
		stage.is_fenced := false;
		stage.is_row_fence := false;
		stage.takes_presented_only := false;
		SELECT attname INTO stage.token_column FROM pg_attribute
		WHERE attrelid = target AND NOT attisdropped AND atttypid = 'lockfence.fence_token'::regtype
		ORDER BY attnum LIMIT 1;
	END IF;
	EXECUTE format('SELECT t.tableoid, coalesce(lockfence.resource_of(%L, t), %s), %s FROM %s t WHERE %s', target,
		lockfence._filled_in(template), coalesce('t.' || quote_ident(stage.token_column), 'NULL'), target, condition)
	INTO stage.leaf, stage.resource, stored;
	IF stage.leaf IS NULL THEN
		RAISE EXCEPTION 'the drill found no row of table "%" with this key', target
			USING ERRCODE = 'no_data_found', HINT = 'Name one that exists. What the drill does to it is rolled back.';
	END IF;
	stage.token := greatest(stored, 0,
		(SELECT m.token FROM lockfence.mark m WHERE m.resource = stage.resource),
		(SELECT max(s.value) FROM lockfence.state s WHERE s.name IN ('floor', 'minimum')),
		(SELECT s.value << 48 FROM lockfence.state s WHERE s.name = 'epoch')) + 1;
	RETURN stage;
END
$$;
COMMENT ON FUNCTION lockfence._set_stage(regclass, text) IS
'looks at the table of a drill';
