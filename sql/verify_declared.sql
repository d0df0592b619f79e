-- What a fence was declared with: is it still there, and fit for its use?

-- A column can be changed only in the table that declares it.
CREATE FUNCTION lockfence._column_home(member regclass, column_name name)
RETURNS regclass
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT a.ancestor
	FROM lockfence._ancestors(member) a JOIN pg_attribute c ON c.attrelid = a.ancestor
	WHERE c.attname = column_name AND NOT c.attisdropped
	ORDER BY a.height DESC, a.ancestor LIMIT 1
$$;
COMMENT ON FUNCTION lockfence._column_home(regclass, name) IS
'the topmost table from which a table has a column';

CREATE FUNCTION lockfence._verify_token_column(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH fence AS MATERIALIZED (
		SELECT f.member, f.root, f.settings, f.settings ->> 'token_column' AS token_column,
			coalesce(f.settings ->> 'accept' = 'read', false) AS is_read
		FROM unnest(members) f
		WHERE f.settings ? 'token_column'
	)
	SELECT f.member, 'warning', 'token_column_missing',
		format('Token column "%s" of %s does not exist: every write is refused.', f.token_column, f.member),
		NULL,
		CASE
			WHEN o.column_name IS NOT NULL THEN format('If it is "%s" now, rename it back or declare the fence of %s again.',
				o.column_name, f.root)
			WHEN f.settings ? 'resource' THEN format('Declare the fence of %s again, with another token column or without one.', f.root)
			ELSE 'The marks of its rows went with it. Have the lock service raise its epoch and call lockfence.set_epoch(), before the fence is declared again.'
		END
	FROM fence f CROSS JOIN LATERAL (
			SELECT CASE count(*) WHEN 1 THEN min(attname::text) END FROM pg_attribute
			WHERE attrelid = f.member AND NOT attisdropped AND atttypid = 'lockfence.fence_token'::regtype
		) AS o (column_name)
	WHERE NOT EXISTS (
		SELECT FROM pg_attribute
		WHERE attrelid = f.member AND attname = f.token_column AND attnum > 0 AND NOT attisdropped)
	UNION ALL
	SELECT u.member, u.severity, 'token_column_unfit',
		format('Token column "%s" of %s %s', u.token_column, u.member, CASE u.fault
			WHEN 'type' THEN format('is of type %s: every write is refused.', u.type)
			WHEN 'identity' THEN 'is an identity column: it presents tokens that were granted to no holder.'
			WHEN 'default' THEN 'has a default: it presents a token that was granted to no holder.'
			ELSE 'is a generated column: every write is refused.' END),
		NULL,
		format(CASE u.fault
				WHEN 'type' THEN CASE WHEN u.is_read THEN 'Change its type in %s to bigint, or name another column.'
					ELSE 'Change its type in %s to lockfence.fence_token, or name another column.' END
				WHEN 'identity' THEN 'Drop the identity in %s.'
				WHEN 'default' THEN 'Drop the default in %s.'
				WHEN 'stored' THEN 'Drop the expression in %s, or name another column.'
				ELSE 'Name another column, or make it an ordinary one in %s.' END, h.home)
	FROM (
		SELECT f.member, f.root, f.settings, f.token_column, f.is_read, format_type(a.atttypid, a.atttypmod), v.severity, v.fault
		FROM fence f
			JOIN pg_attribute a ON a.attrelid = f.member AND a.attname = f.token_column
				AND a.attnum > 0 AND NOT a.attisdropped
			CROSS JOIN LATERAL (VALUES
				('warning', 'type', a.atttypid NOT IN ('bigint'::regtype, 'lockfence.fence_token'::regtype)
					AND NOT (f.is_read AND a.atttypid IN ('integer'::regtype, 'smallint'::regtype))),
				('warning', 'stored', a.attgenerated = 's'),
				('warning', 'virtual', a.attgenerated NOT IN ('', 's')),
				('error', 'identity', a.attidentity <> ''),
				('error', 'default', a.atthasdef AND a.attgenerated = ''
					AND NOT (f.is_read AND lockfence._is_zero_default(a.attrelid, a.attnum)))
			) AS v (severity, fault, found)
		WHERE v.found
	) AS u (member, root, settings, token_column, is_read, type, severity, fault)
		CROSS JOIN LATERAL (
			SELECT CASE u.fault WHEN 'default' THEN u.member
				ELSE lockfence._column_home(u.member, u.token_column::name) END
		) AS h (home)
	WHERE h.home = u.member OR h.home NOT IN (SELECT m.member FROM unnest(members) m)
$$;
COMMENT ON FUNCTION lockfence._verify_token_column(lockfence._member[]) IS
'findings of verify(): token columns that are not there or cannot hold tokens';

CREATE FUNCTION lockfence._verify_placeholders(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH placeholder AS MATERIALIZED (
		SELECT f.member, f.root, f.settings, p.name, a.attgenerated
		FROM unnest(members) f
			CROSS JOIN unnest(lockfence._placeholders(f.settings ->> 'resource')) AS p (name)
			LEFT JOIN pg_attribute a ON a.attrelid = f.member AND a.attname = p.name
				AND a.attnum > 0 AND NOT a.attisdropped
	)
	SELECT p.member, 'warning', 'placeholder_missing',
		format('%s has no column "%s", which its resource "%s" names: every write is refused.',
			p.member, p.name, p.settings ->> 'resource'),
		NULL, format('Rename the column back, or declare the fence of %s again with the column that holds it now in place of {%s}.',
			p.root, p.name)
	FROM placeholder p
	WHERE p.attgenerated IS NULL
	UNION ALL
	SELECT p.member, 'warning', 'placeholder_unfit',
		format('Column "%s" of %s, which its resource "%s" names, is a generated column: every write is refused.',
			p.name, p.member, p.settings ->> 'resource'),
		NULL, format('Declare the fence of %s again with the columns that it is computed from in place of {%s}, or make it an ordinary column in %s.',
			p.root, p.name, h.home)
	FROM placeholder p CROSS JOIN LATERAL lockfence._column_home(p.member, p.name) AS h (home)
	WHERE p.attgenerated <> '' AND (h.home = p.member OR h.home NOT IN (SELECT m.member FROM unnest(members) m))
	UNION ALL
	SELECT p.member, 'error', 'placeholder_unfit',
		format('Column "%s" of %s is both the token and part of the resource "%s": every token has a mark of its own.',
			p.name, p.member, p.settings ->> 'resource'),
		NULL, format('Declare the fence of %s again with another column in place of {%s}.', p.root, p.name)
	FROM placeholder p
	WHERE p.name = p.settings ->> 'token_column'
$$;
COMMENT ON FUNCTION lockfence._verify_placeholders(lockfence._member[]) IS
'findings of verify(): columns that a resource''s name needs and cannot have';

CREATE FUNCTION lockfence._verify_choices(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.member, 'error', 'row_marks_unlogged',
		format('%s is unlogged: a crash empties it of its rows and, as it has a row fence, of its marks.', f.member),
		NULL, 'Make it logged.'
	FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
	WHERE c.relkind = 'r' AND c.relpersistence = 'u' AND NOT f.settings ? 'resource'
		AND f.settings ? 'token_column'
	UNION ALL
	SELECT f.member, 'info', v.code, format('The fence of %s ' || v.problem, f.member,
			CASE f.settings ->> 'missing' WHEN 'allow' THEN 'writes' ELSE upper(substr(f.settings ->> 'missing', length('allow ') + 1)) END),
		NULL, v.advice
	FROM unnest(members) f
		JOIN (VALUES
			('enforcement', 'advisory', 'is advisory: it reports stale writes and lets them pass.',
				'Declare it again as fenced, once it reports no write that is right.'),
			('missing', 'missing_allowed', 'lets %s without a token pass.',
				'Declare it again so that they are refused, once every writer presents its token.')
		) AS v (setting, code, problem, advice) ON f.settings ? v.setting
	WHERE f.member = f.root
	UNION ALL
	SELECT f.member, 'warning', 'advisory_long',
		format('The fence of %s has been advisory since %s, which is more than 30 days.',
			f.member, min(a.advisory_since)),
		NULL, 'Declare it again as fenced, or detach it.'
	FROM unnest(members) f JOIN lockfence.fences a ON a.target = f.member
	WHERE f.member = f.root AND f.settings ? 'enforcement'
		AND a.advisory_since < now() - interval '30 days'
	GROUP BY f.member, f.root, f.settings
$$;
COMMENT ON FUNCTION lockfence._verify_choices(lockfence._member[]) IS
'findings of verify(): what a fence was declared to let pass, and marks that a crash would lose';

CREATE FUNCTION lockfence._verify_validator(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH asked AS MATERIALIZED (
		SELECT f.member, f.root, f.settings, f.settings ->> 'validator' AS signature, c.relowner,
			lockfence._find_validator(f.settings ->> 'validator') AS validator
		FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
		WHERE f.settings ? 'validator'
	)
	SELECT a.member, 'warning', 'validator_missing',
		format('Validator %s of %s does not exist: every write is refused.', a.signature, a.member),
		NULL, format('Create it again, or declare the fence of %s again with another one or without.', a.root)
	FROM asked a
	WHERE a.validator IS NULL
	UNION ALL
	SELECT a.member, 'error', 'validator_unfit',
		format('Validator %s of %s is not a function of a resource and a token that returns boolean.',
			a.signature, a.member),
		NULL, format('Create it as one, or declare the fence of %s again with another one or without.', a.root)
	FROM asked a JOIN pg_proc p ON p.oid = a.validator
	WHERE NOT lockfence._is_validator(p.oid)
	UNION ALL
	SELECT a.member, 'warning', 'validator_not_executable',
		format('The owner of %s may not execute its validator %s: every write is refused.', a.member, a.signature),
		NULL, format('If it is the right validator, let "%s" execute it.', pg_get_userbyid(a.relowner))
	FROM asked a JOIN pg_proc p ON p.oid = a.validator
	WHERE NOT has_function_privilege(a.relowner, p.oid, 'EXECUTE')
	UNION ALL
	SELECT a.member, 'warning', 'validator_not_executable',
		format('The owner of %s may not use the schema of its validator %s: every write is refused.',
			a.member, a.signature),
		NULL, format('If it is the right validator, let "%s" use schema "%s".', pg_get_userbyid(a.relowner), n.nspname)
	FROM asked a JOIN pg_proc p ON p.oid = a.validator JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE NOT has_schema_privilege(a.relowner, n.oid, 'USAGE')
$$;
COMMENT ON FUNCTION lockfence._verify_validator(lockfence._member[]) IS
'findings of verify(): validators that cannot be called';
