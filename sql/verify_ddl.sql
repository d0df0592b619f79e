-- The fence of DDL, if there is one: are its event triggers as fence_ddl() made them?

CREATE FUNCTION lockfence._verify_ddl_fence()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
	WITH own AS MATERIALIZED (
		SELECT * FROM pg_event_trigger WHERE evtfoid = 'lockfence.admit_ddl()'::regprocedure
	), lacking AS (
		SELECT n.name, n.event, (
			SELECT min(o.evtname) FROM own o WHERE o.evtevent = n.event AND o.evttags IS NULL) AS present
		FROM (VALUES ('lockfence_ddl_start'::name, 'ddl_command_start'::name), ('lockfence_ddl_end', 'ddl_command_end')) AS n (name, event)
		WHERE NOT EXISTS (
			SELECT FROM own o WHERE o.evtevent = n.event AND o.evttags IS NULL AND o.evtenabled = 'A')
	)
	SELECT NULL::regclass, 'error', 'ddl_fence',
		format('DDL is fenced, but event trigger %s %s: stale holders can run DDL.', lockfence._identifier(coalesce(l.present, l.name)),
			CASE WHEN l.present IS NULL THEN 'is missing or altered' ELSE 'does not fire always' END),
		CASE
			WHEN l.present IS NOT NULL THEN format('ALTER EVENT TRIGGER %s ENABLE ALWAYS;', lockfence._identifier(l.present))
			WHEN NOT t.is_taken THEN format('CREATE EVENT TRIGGER %1$s ON %2$s EXECUTE FUNCTION lockfence.admit_ddl(); ALTER EVENT TRIGGER %1$s ENABLE ALWAYS;',
				l.name, l.event)
		END,
		CASE WHEN l.present IS NULL AND t.is_taken THEN
			'Call lockfence.unfence_ddl() and lockfence.fence_ddl() in one transaction; if another event trigger has the name, rename that first.' END
	FROM lacking l CROSS JOIN LATERAL (
			SELECT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = l.name)
		) AS t (is_taken)
	WHERE EXISTS (SELECT FROM lockfence.ddl_fence)
	UNION ALL
	SELECT NULL, 'warning', 'ddl_fence',
		'DDL is fenced, but its resource is not on record, as after a restore of the definitions alone: every command is refused.',
		NULL, 'Call lockfence.fence_ddl() with the resource that DDL needs a grant of, or lockfence.unfence_ddl().'
	WHERE EXISTS (SELECT FROM own) AND NOT EXISTS (SELECT FROM lockfence.ddl_fence)
$$;
COMMENT ON FUNCTION lockfence._verify_ddl_fence() IS
'findings of verify(): the event triggers of fence_ddl() that are missing or altered, and those that are there without it';
