-- Settings, the timeline, and shared memory.

-- pg_parameter_acl exists from PostgreSQL 15.
CREATE FUNCTION lockfence._verify_parameter_grants()
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
			NULL, 'Revoke it, unless it is the role for maintenance.'
		FROM pg_parameter_acl p CROSS JOIN aclexplode(p.paracl) AS a
			JOIN (VALUES
				('session_replication_role', 'replica_role_grant', 'it can keep triggers that are not ALWAYS from firing.'),
				('event_triggers', 'event_triggers_grant', 'it can run DDL that no event trigger sees, past the fence of DDL too.'),
				('lockfence.bypass', 'bypass_grant', 'it can write past every fence.'),
				('lockfence.enforcement', 'enforcement_grant', 'it can have every fence report instead of refusing.'),
				('lockfence.preempt', 'preempt_grant', 'it can end other roles'' transactions.'),
				('lockfence.validator', 'validator_grant', 'it can raise marks to tokens that no validator was asked about.')
			) AS s (name, code, problem) ON s.name = p.parname
		WHERE lockfence._is_outsider(a.grantee, 10)
	$query$;
END
$$;
COMMENT ON FUNCTION lockfence._verify_parameter_grants() IS
'findings of verify(): roles that may set what switches guards off';

CREATE FUNCTION lockfence._switched_off(config text[])
RETURNS TABLE (setting text, code text, severity text, problem text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.name, v.code, v.severity, v.problem
	FROM (
		SELECT lower(split_part(s.setting, '=', 1)), lower(substr(s.setting, strpos(s.setting, '=') + 1))
		FROM unnest(config) AS s (setting)
	) AS c (name, value) JOIN (VALUES
		('session_replication_role', 'replica_role', 'warning', 'only triggers that fire always do'),
		('event_triggers', 'event_triggers', 'warning', 'no event trigger fires, and the fence of DDL does not decide'),
		('lockfence.bypass', 'bypass', 'error', 'no fence decides'),
		('lockfence.enforcement', 'enforcement', 'warning', 'every fence only reports')
	) AS v (name, code, severity, problem) ON v.name = c.name
	WHERE CASE c.name WHEN 'session_replication_role' THEN c.value = 'replica'
		WHEN 'lockfence.enforcement' THEN c.value = 'advisory'
		ELSE (c.value ~ '^(of|off|f|fa|fal|fals|false|n|no|0)$') = (c.name = 'event_triggers') END
$$;
COMMENT ON FUNCTION lockfence._switched_off(text[]) IS
'the settings of a role, database or function that switch guards off';

CREATE FUNCTION lockfence._verify_settings()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, o.severity, o.code || '_setting',
		format('%s is set %s: there %s.', o.setting, w.place, o.problem),
		NULL, CASE o.code WHEN 'enforcement' THEN 'Reset it there, once the trial is over.'
			ELSE 'Reset it there, unless it is the role for maintenance.' END
	FROM pg_db_role_setting s
		LEFT JOIN pg_database d ON d.oid = s.setdatabase
		CROSS JOIN LATERAL lockfence._switched_off(s.setconfig) o
		CROSS JOIN LATERAL (
			SELECT concat_ws(' ', 'for',
					CASE s.setrole WHEN 0 THEN 'every role' ELSE format('role "%s"', pg_get_userbyid(s.setrole)) END,
					'in database "' || d.datname || '"')
		) AS w (place)
	WHERE s.setdatabase = 0 OR d.datname = current_database()
	UNION ALL
	SELECT NULL, o.severity, o.code || '_in_function',
		format('%s is set by %s: while it runs, %s.', o.setting, p.oid::regprocedure, o.problem),
		NULL, 'Reset it there, unless the function is for maintenance.'
	FROM pg_proc p CROSS JOIN LATERAL lockfence._switched_off(p.proconfig) o
	WHERE p.proconfig IS NOT NULL
	UNION ALL
	SELECT NULL, o.severity, v.code, format('%s is %s in this session: %s.', o.setting, v.value, o.problem),
		NULL, CASE WHEN 'configuration file' = (SELECT s.source FROM pg_settings s WHERE s.name = o.setting)
			THEN 'Take it out of the configuration file, and reload.' ELSE v.advice END
	FROM (VALUES
			('lockfence.bypass', 'bypass_is_on', 'on', 'Set it off in this session.'),
			('lockfence.enforcement', 'enforcement_is_advisory', 'advisory', 'Reset it where it is set now, once the trial is over.')
		) AS v (setting, code, value, advice)
		CROSS JOIN LATERAL lockfence._switched_off(ARRAY[v.setting || '=' || nullif(current_setting(v.setting, true), '')]) o
$$;
COMMENT ON FUNCTION lockfence._verify_settings() IS
'findings of verify(): settings in force that switch guards off';

CREATE FUNCTION lockfence._verify_default_validator()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'warning', v.code, format(v.problem, s.signature),
		NULL, 'Set lockfence.validator where it is set now: to a function that exists, or to nothing.'
	FROM nullif(current_setting('lockfence.validator', true), '') AS s (signature)
		CROSS JOIN LATERAL lockfence._find_validator(s.signature) AS f (validator)
		JOIN (VALUES
			('default_validator_missing', 'lockfence.validator names %s, which does not exist: no mark is raised.'),
			('default_validator_unfit',
				'lockfence.validator names %s, which is not a function of a resource and a token that returns boolean: no mark is raised.')
		) AS v (code, problem) ON v.code = CASE
			WHEN f.validator IS NULL THEN 'default_validator_missing'
			WHEN f.validator <> 0 AND NOT lockfence._is_validator(f.validator) THEN 'default_validator_unfit' END
	WHERE s.signature IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._verify_default_validator() IS
'findings of verify(): a default validator that cannot be called';

CREATE FUNCTION lockfence._verify_gate()
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 2
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF to_regclass('lockfence.state') IS NULL OR EXISTS (
		SELECT FROM lockfence._foreign_things() f
		WHERE f.target = to_regclass('lockfence.state') AND f.kind IN ('column', 'access method') AND NOT f.is_harmless)
	THEN
		RETURN;
	END IF;
	RETURN QUERY
	WITH gate AS MATERIALIZED (
		SELECT *, format('The database went from timeline %s to %s (%s)', recorded_timeline, timeline,
			concat_ws(': ', event, nullif(reason, ''))) AS change,
			'ask the lock service for the highest token that it has issued, and call lockfence.reopen() with a higher one and a reason.' AS act
		FROM lockfence.gate()
	)
	SELECT NULL::regclass, 'warning', 'sealed', change || ', and every write to a fenced table is refused.',
		NULL, 'To go on, ' || act
	FROM gate WHERE state = 'sealed'
	UNION ALL
	SELECT NULL, 'warning', 'timeline_changed', change || ': marks may have gone back, and the next write goes on.',
		NULL, 'Unless no acknowledged commit was lost, ' || act
	FROM gate WHERE state = 'changed' AND event <> 'other system'
	UNION ALL
	SELECT NULL, 'info', 'timeline_changed',
		'The timeline on record is another cluster''s, as after pg_upgrade. The next write puts this one''s on record.',
		$remedy$SELECT lockfence._record_timeline() FROM lockfence.gate() AS g WHERE g.state OPERATOR(pg_catalog.=) 'changed' AND g.event OPERATOR(pg_catalog.=) 'other system';$remedy$,
		NULL
	FROM gate WHERE state = 'changed' AND event = 'other system'
	UNION ALL
	SELECT NULL, 'warning', 'timeline_unknown',
		'No timeline is on record: lockfence would not notice if the database went back in time.',
		$remedy$SELECT lockfence._record_timeline() FROM lockfence.gate() AS g WHERE g.state OPERATOR(pg_catalog.=) 'off';$remedy$,
		NULL
	FROM gate WHERE state = 'off'
	UNION ALL
	SELECT NULL, 'info', 'timeline_ignored',
		format('lockfence.on_timeline_change is %s: if the database goes back in time, stale holders are accepted.', s.setting),
		NULL, 'Reset it, unless its value was chosen for this database.'
	FROM gate, current_setting('lockfence.on_timeline_change') AS s (setting)
	WHERE s.setting IN ('warn', 'ignore');
END
$$;
COMMENT ON FUNCTION lockfence._verify_gate() IS
'findings of verify(): the database went back in time, or lockfence would not notice it';

CREATE FUNCTION lockfence._verify_statistics()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'info', 'statistics_unavailable',
		'There is no shared memory for statistics: refusals leave no trace but the server''s log.',
		NULL, 'Add lockfence to shared_preload_libraries, and restart the server.'
	FROM lockfence.stats_info() i
	WHERE NOT i.available AND NOT lockfence._needs_restart()
$$;
COMMENT ON FUNCTION lockfence._verify_statistics() IS
'findings of verify(): nothing is counted';

-- Sizes are PGC_POSTMASTER where the library is preloaded.
CREATE FUNCTION lockfence._verify_memory()
RETURNS SETOF lockfence._finding
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF lockfence._needs_restart() THEN
		RETURN QUERY SELECT NULL::regclass, 'warning', 'needs_restart',
			'lockfence was replaced by another version, and the server has not been restarted since: no new session can write to a fenced table.',
			NULL, 'Restart the server.';
	END IF;
	RETURN QUERY
	SELECT NULL::regclass, 'info', 'size_ignored',
		format('The configuration sets %s, which has no effect without preloading the library: it is %s.', s.name, s.setting),
		NULL, 'Add lockfence to shared_preload_libraries, and restart the server; or take the setting out.'
	FROM pg_settings s
	WHERE s.name IN ('lockfence.max_cached_marks', 'lockfence.max_tables', 'lockfence.max_refusals', 'lockfence.max_offenders',
			'lockfence.max_takeovers')
		AND s.context = 'sighup' AND s.source <> 'default';
END
$$;
COMMENT ON FUNCTION lockfence._verify_memory() IS
'findings of verify(): shared memory of another version, or sizes that it does not have';
