\echo Use "CREATE EXTENSION lockfence" to load this file. \quit

-- Privileges: the schema and what only reads are open to everybody.  What can
-- move a mark or make a fence is granted by the administrator.

DO $$
BEGIN
	IF (SELECT nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'lockfence')
		<> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
		RAISE EXCEPTION 'schema "lockfence" belongs to another role'
			USING HINT = 'Its owner could plant objects in it. Drop it, or have it owned by the role that creates the extension.';
	END IF;
END
$$;

GRANT USAGE ON SCHEMA lockfence TO PUBLIC;
COMMENT ON SCHEMA lockfence IS 'refuses the writes of stale lock holders by fencing token';

-- ---------------------------------------------------------------- tokens

-- No CHECK: adding a column of a constrained domain would rewrite the table.
CREATE DOMAIN lockfence.fence_token AS bigint;
COMMENT ON DOMAIN lockfence.fence_token IS
'fencing token: epoch (0..32767) * 2^48 + revision (0..2^48-1), always greater than 0; what is not is refused at the fence with LF003';

CREATE FUNCTION lockfence.make_token(epoch integer, revision bigint)
RETURNS lockfence.fence_token
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_make_token';
COMMENT ON FUNCTION lockfence.make_token(integer, bigint) IS
'the token of an epoch (0..32767) and a revision (0..2^48-1); LF003 if either is out of range or null, or both are 0. Example: lockfence.make_token(1, 42)';

CREATE FUNCTION lockfence.token_epoch(token lockfence.fence_token)
RETURNS integer
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_token_epoch_sql';
COMMENT ON FUNCTION lockfence.token_epoch(lockfence.fence_token) IS
'the epoch of a token, 0..32767; LF003 if the token is not greater than 0';

CREATE FUNCTION lockfence.token_revision(token lockfence.fence_token)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_token_revision_sql';
COMMENT ON FUNCTION lockfence.token_revision(lockfence.fence_token) IS
'the revision of a token, 0..2^48-1; LF003 if the token is not greater than 0';

-- ---------------------------------------------------------------- marks

-- COLLATE "C": an index that a new C library sorts differently would miss
-- marks.  Half-full pages: an advance is then a heap-only update.
CREATE TABLE lockfence.mark (
	token lockfence.fence_token NOT NULL,
	advanced_at timestamp with time zone NOT NULL,
	resource text COLLATE "C" NOT NULL,
	CONSTRAINT mark_pkey PRIMARY KEY (resource)
) WITH (fillfactor = 50);
COMMENT ON TABLE lockfence.mark IS
'the high-water mark of each named resource: the highest token accepted. Written by the fence alone; see raise_mark(), reset_mark(), prune()';
COMMENT ON COLUMN lockfence.mark.token IS 'the highest token accepted';
COMMENT ON COLUMN lockfence.mark.advanced_at IS 'start of the transaction that accepted it';
COMMENT ON COLUMN lockfence.mark.resource IS 'the name of the resource, as its lock is named';

CREATE TABLE lockfence.state (
	name text COLLATE "C" NOT NULL,
	value bigint NOT NULL,
	CONSTRAINT state_pkey PRIMARY KEY (name),
	CONSTRAINT state_is_valid CHECK (
		(name OPERATOR(pg_catalog.=) 'epoch' AND value BETWEEN 0 AND 32767) OR
		(name OPERATOR(pg_catalog.=) 'floor' AND value OPERATOR(pg_catalog.>) 0))
);
COMMENT ON TABLE lockfence.state IS
'what holds for every resource: the current epoch (no row: any), and the floor, a token that stands for marks folded by prune() (no row: none)';

CREATE TABLE lockfence.admin_log (
	id bigint GENERATED ALWAYS AS IDENTITY,
	at timestamp with time zone NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	role name NOT NULL DEFAULT SESSION_USER,
	action text NOT NULL,
	resource text,
	before bigint,
	after bigint,
	reason text NOT NULL,
	CONSTRAINT admin_log_pkey PRIMARY KEY (id)
);
COMMENT ON TABLE lockfence.admin_log IS
'every call of an administration function: when, who (the session''s role), what, the token or epoch before and after, and why';

SELECT pg_catalog.pg_extension_config_dump('lockfence.mark', '');
SELECT pg_catalog.pg_extension_config_dump('lockfence.state', '');
SELECT pg_catalog.pg_extension_config_dump('lockfence.admin_log', '');
SELECT pg_catalog.pg_extension_config_dump('lockfence.admin_log_id_seq', '');

REVOKE ALL ON lockfence.mark, lockfence.state, lockfence.admin_log FROM PUBLIC;
GRANT SELECT ON lockfence.mark, lockfence.state TO PUBLIC;

CREATE FUNCTION lockfence.guard_mark() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_guard_mark';
COMMENT ON FUNCTION lockfence.guard_mark() IS
'trigger of lockfence.mark: turns DML, as of a data restore, into raised marks; LF009 for what would lower or remove one';

CREATE FUNCTION lockfence.guard_marks() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_guard_marks';
COMMENT ON FUNCTION lockfence.guard_marks() IS
'trigger of lockfence.mark: refuses TRUNCATE with LF009';

CREATE FUNCTION lockfence.state_changed() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_state_changed';
COMMENT ON FUNCTION lockfence.state_changed() IS
'trigger of lockfence.state: makes every session read it again';

REVOKE ALL ON FUNCTION lockfence.guard_mark(), lockfence.guard_marks(), lockfence.state_changed()
FROM PUBLIC;

CREATE TRIGGER "~lockfence_mark" BEFORE INSERT OR UPDATE OR DELETE ON lockfence.mark
FOR EACH ROW EXECUTE FUNCTION lockfence.guard_mark();
CREATE TRIGGER "~lockfence_marks" BEFORE TRUNCATE ON lockfence.mark
FOR EACH STATEMENT EXECUTE FUNCTION lockfence.guard_marks();
CREATE TRIGGER "~lockfence_state" AFTER INSERT OR UPDATE OR DELETE ON lockfence.state
FOR EACH ROW EXECUTE FUNCTION lockfence.state_changed();
ALTER TABLE lockfence.mark ENABLE ALWAYS TRIGGER "~lockfence_mark";
ALTER TABLE lockfence.mark ENABLE ALWAYS TRIGGER "~lockfence_marks";
ALTER TABLE lockfence.state ENABLE ALWAYS TRIGGER "~lockfence_state";

-- ---------------------------------------------------------------- presenting

CREATE FUNCTION lockfence.present(token lockfence.fence_token)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_present_ambient';
COMMENT ON FUNCTION lockfence.present(lockfence.fence_token) IS
'shows a token for whatever resource this transaction''s later writes touch; gone at its end, so alone in autocommit it has no effect. LF003 if it is no token';

CREATE FUNCTION lockfence.present(resource text, token lockfence.fence_token)
RETURNS lockfence.fence_token
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_present';
COMMENT ON FUNCTION lockfence.present(text, lockfence.fence_token) IS
'shows a token for a resource: checks it, advances the mark, and holds the resource to the end of the transaction; returns the mark before (null: first). LF001 stale, LF003 no token, LF004 unknown epoch. Example: SELECT lockfence.present(''settle:batch-9921'', 281474976710698)';

CREATE FUNCTION lockfence.presented()
RETURNS TABLE (resource text, token lockfence.fence_token)
LANGUAGE c VOLATILE ROWS 10
AS 'MODULE_PATHNAME', 'lockfence_presented';
COMMENT ON FUNCTION lockfence.presented() IS
'what this transaction has presented: the token accepted for each resource, and the ambient token, whose resource is null';

CREATE FUNCTION lockfence.is_current(resource text, token lockfence.fence_token)
RETURNS boolean
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_is_current';
COMMENT ON FUNCTION lockfence.is_current(text, lockfence.fence_token) IS
'is it worth going on? Whether the token would be accepted now, without any lock, so only as advice; also on a standby. LF003 if it is no token';

REVOKE ALL ON FUNCTION
	lockfence.present(lockfence.fence_token),
	lockfence.present(text, lockfence.fence_token)
FROM PUBLIC;

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
	OUT missing text, OUT repeat text, OUT validator regprocedure)
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'lockfence_fence_settings';
COMMENT ON FUNCTION lockfence.fence_settings(bytea) IS
'the settings that a guard''s arguments (pg_trigger.tgargs) declare; an error if they declare none that make sense';

CREATE FUNCTION lockfence.template_columns(template text)
RETURNS text[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'lockfence_template_columns';
COMMENT ON FUNCTION lockfence.template_columns(text) IS
'the columns that a resource template names in braces, in their order; an error if a brace is out of place';

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
		UNION ALL
		SELECT i.inhrelid, f.depth + 1
		FROM family f JOIN pg_inherits i ON i.inhparent = f.relid
	)
	SELECT relid::regclass, max(depth) FROM family GROUP BY relid ORDER BY 2, 1
$$;
COMMENT ON FUNCTION lockfence._family(regclass) IS
'a table with its partitions and inheritance children, parents first';

-- Settings that parse, or a row of nulls.
CREATE FUNCTION lockfence._settings(
	arguments bytea,
	OUT resource text, OUT token_column text, OUT accept text, OUT enforcement text,
	OUT missing text, OUT repeat text, OUT validator regprocedure)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	SELECT s.* INTO resource, token_column, accept, enforcement, missing, repeat, validator
	FROM lockfence.fence_settings(arguments) s;
EXCEPTION WHEN OTHERS THEN
	NULL;
END
$$;
COMMENT ON FUNCTION lockfence._settings(bytea) IS
'fence_settings(), with nulls in place of an error';

CREATE VIEW lockfence.fences AS
SELECT c.oid::pg_catalog.regclass AS target,
	CASE
		WHEN s.accept IS NULL THEN NULL
		WHEN s.resource IS NULL THEN 'row'
		WHEN pg_catalog.cardinality(lockfence.template_columns(s.resource)) OPERATOR(pg_catalog.=) 0
			THEN 'constant'
		ELSE 'template'
	END AS kind,
	s.resource, s.token_column, s.accept, s.enforcement, s.missing, s.repeat, s.validator,
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
		WHERE g.tgrelid OPERATOR(pg_catalog.=) c.oid
			AND g.tgfoid OPERATOR(pg_catalog.=) ANY (ARRAY[
				'lockfence.guard_row'::pg_catalog.regproc::pg_catalog.oid,
				'lockfence.guard_statement'::pg_catalog.regproc::pg_catalog.oid,
				'lockfence.guard_truncate'::pg_catalog.regproc::pg_catalog.oid])
	) AS triggers
FROM pg_catalog.pg_trigger t
	JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
	CROSS JOIN LATERAL lockfence._settings(t.tgargs) s
WHERE t.tgfoid OPERATOR(pg_catalog.=) ANY (ARRAY[
	'lockfence.guard_row'::pg_catalog.regproc::pg_catalog.oid,
	'lockfence.guard_statement'::pg_catalog.regproc::pg_catalog.oid]);
COMMENT ON VIEW lockfence.fences IS
'every fenced table with its settings, whether it has them from a parent, and the state of its triggers (all should be "always")';
GRANT SELECT ON lockfence.fences TO PUBLIC;

CREATE FUNCTION lockfence._refuse_target(target regclass, reason text, hint text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE EXCEPTION 'cannot fence "%"', target
		USING ERRCODE = 'LF009', DETAIL = reason, HINT = hint;
END
$$;
COMMENT ON FUNCTION lockfence._refuse_target(regclass, text, text) IS
'raises LF009 with the reason why a table cannot be fenced';

-- What every table of the family has to be.
CREATE FUNCTION lockfence._check_member(member regclass)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	class pg_class;
	kind text;
BEGIN
	SELECT * INTO class FROM pg_class WHERE oid = member;
	kind := CASE class.relkind
		WHEN 'v' THEN 'a view' WHEN 'm' THEN 'a materialized view' WHEN 'f' THEN 'a foreign table'
		WHEN 'S' THEN 'a sequence' WHEN 'c' THEN 'a composite type' WHEN 't' THEN 'a TOAST table'
		WHEN 'i' THEN 'an index' WHEN 'I' THEN 'an index' END;
	IF class.relkind = 'f' THEN
		PERFORM lockfence._refuse_target(member,
			format('"%s" is a foreign table: its rows can be written without this server.', member),
			'Fence the table on the server that holds it.');
	ELSIF kind IS NOT NULL THEN
		PERFORM lockfence._refuse_target(member, format('"%s" is %s.', member, kind),
			'Fence the table that holds the rows.');
	END IF;
	IF class.relnamespace IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace)
		OR class.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'information_schema') THEN
		PERFORM lockfence._refuse_target(member, 'System catalogs fire no triggers.',
			'Fence a table of your own.');
	END IF;
	IF class.relnamespace = 'lockfence'::regnamespace THEN
		PERFORM lockfence._refuse_target(member, 'The table is part of lockfence.',
			'Fence a table of your own.');
	END IF;
	IF EXISTS (SELECT FROM pg_rewrite WHERE ev_class = member AND ev_type <> '1') THEN
		PERFORM lockfence._refuse_target(member,
			format('Table "%s" has a rule, which can send a write past its triggers.', member),
			'Replace the rule by a trigger.');
	END IF;
	IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = member AND tgname LIKE '~lockfence\_%') THEN
		RAISE EXCEPTION 'table "%" is already fenced', member
			USING ERRCODE = 'duplicate_object',
				HINT = 'Use lockfence.detach() first to change a fence.';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_member(regclass) IS
'raises LF009 with the reason if a table, or a partition or child of one, cannot be fenced';

CREATE FUNCTION lockfence._check_word(setting text, value text, words text[])
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF value = ANY (words) THEN
		RETURN;
	END IF;
	RAISE EXCEPTION 'invalid value for "%": %', setting, quote_nullable(value)
		USING ERRCODE = 'invalid_parameter_value',
			HINT = format('Use one of: %s.', array_to_string(words, ', '));
END
$$;
COMMENT ON FUNCTION lockfence._check_word(text, text, text[]) IS
'raises an error if a setting is none of its words';

CREATE FUNCTION lockfence._check_placeholders(target regclass, resource text, token_column name)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	placeholder text;
	attribute pg_attribute;
BEGIN
	IF resource = '' OR octet_length(resource) > 1024 THEN
		RAISE EXCEPTION 'resource must be 1 to 1024 bytes long'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	FOREACH placeholder IN ARRAY lockfence.template_columns(resource) LOOP
		SELECT * INTO attribute FROM pg_attribute
		WHERE attrelid = target AND attname = placeholder AND attnum > 0 AND NOT attisdropped;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'column "%" of table "%" does not exist', placeholder, target
				USING ERRCODE = 'undefined_column',
					DETAIL = format('The resource "%s" names it as a placeholder.', resource),
					HINT = 'A brace that belongs to the name itself is written twice.';
		END IF;
		IF attribute.attgenerated <> '' THEN
			PERFORM lockfence._refuse_target(target,
				format('Placeholder "%s" is a generated column, which is not yet computed when the fence decides.',
					placeholder),
				'Name the columns that it is computed from.');
		END IF;
		IF placeholder = token_column THEN
			PERFORM lockfence._refuse_target(target,
				format('Column "%s" cannot be both the token and part of the resource.', placeholder),
				'Keep the token in a column of its own.');
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION lockfence._check_placeholders(regclass, text, name) IS
'raises an error if a resource template cannot be filled in from the table''s columns';

-- The column has to be fit on every table of the family: a partition or child
-- may have a default of its own.
CREATE FUNCTION lockfence._check_token_column(member regclass, token_column name)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	attribute pg_attribute;
BEGIN
	SELECT * INTO attribute FROM pg_attribute
	WHERE attrelid = member AND attname = token_column AND NOT attisdropped;
	IF attribute.attnum < 0 OR attribute.atttypid NOT IN
		('bigint'::regtype, 'lockfence.fence_token'::regtype) THEN
		PERFORM lockfence._refuse_target(member,
			format('Column "%s" is of type %s.', token_column,
				format_type(attribute.atttypid, attribute.atttypmod)),
			'A token column is of type lockfence.fence_token or bigint; name another one.');
	END IF;
	IF attribute.attgenerated <> '' THEN
		PERFORM lockfence._refuse_target(member,
			format('Column "%s" is a generated column, which is not yet computed when the fence decides.',
				token_column),
			'Name another token column.');
	END IF;
	IF attribute.attidentity <> '' OR attribute.atthasdef THEN
		PERFORM lockfence._refuse_target(member,
			format('Column "%s" has a default, which would present a token that nobody holds.', token_column),
			'Drop the default, or name another token column.');
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_token_column(regclass, name) IS
'raises LF009 with the reason if a table''s column cannot hold its tokens';

-- Adding the column rewrites nothing.
CREATE FUNCTION lockfence._provide_token_column(target regclass, token_column name)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_attribute
		WHERE attrelid = target AND attname = token_column AND NOT attisdropped) THEN
		EXECUTE format('ALTER TABLE %s ADD COLUMN %I lockfence.fence_token', target, token_column);
	END IF;
	PERFORM lockfence._check_token_column(member, token_column) FROM lockfence._family(target);
END
$$;
COMMENT ON FUNCTION lockfence._provide_token_column(regclass, name) IS
'adds a token column to a table if it is missing; raises LF009 if what is there cannot be one';

CREATE FUNCTION lockfence._check_validator(validator regprocedure)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	proc pg_proc;
BEGIN
	SELECT * INTO proc FROM pg_proc WHERE oid = validator;
	IF proc.prokind <> 'f' OR proc.proretset OR proc.prorettype <> 'boolean'::regtype
		OR proc.pronargs <> 2 OR proc.proargtypes[0] <> 'text'::regtype
		OR proc.proargtypes[1] NOT IN ('lockfence.fence_token'::regtype, 'bigint'::regtype) THEN
		RAISE EXCEPTION 'function % cannot be a validator', validator
			USING ERRCODE = 'invalid_function_definition',
				HINT = 'A validator is a function of (resource text, token lockfence.fence_token) that returns boolean.';
	END IF;
	IF NOT has_function_privilege(validator, 'EXECUTE') THEN
		RAISE EXCEPTION 'permission denied for function %', validator
			USING ERRCODE = 'insufficient_privilege';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_validator(regprocedure) IS
'raises an error if a function cannot be a fence''s validator';

-- The settings as trigger arguments; those that are as by default are left out.
CREATE FUNCTION lockfence._arguments(
	resource text, token_column name, accept text, enforcement text, missing text, repeat text,
	validator regprocedure)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(quote_literal(a.setting || '=' || a.value), ', ' ORDER BY a.place)
	FROM (VALUES
		(1, 'resource', resource),
		(2, 'token_column', token_column::text),
		(3, 'accept', nullif(accept, 'any')),
		(4, 'enforcement', nullif(enforcement, 'fenced')),
		(5, 'missing', nullif(missing, 'reject')),
		(6, 'repeat', nullif(repeat, 'accept')),
		(7, 'validator', (
			SELECT format('%I.%I(pg_catalog.text,%s)', n.nspname, p.proname,
				CASE WHEN p.proargtypes[1] = 'bigint'::regtype THEN 'pg_catalog.int8'
					ELSE 'lockfence.fence_token' END)
			FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
			WHERE p.oid = validator))
	) AS a (place, setting, value)
	WHERE a.value IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._arguments(text, name, text, text, text, text, regprocedure) IS
'a fence''s settings as the arguments of its triggers';

-- Creates what a table of the family lacks: parents come first, and the row
-- trigger of a partitioned table is cloned to its partitions.
CREATE FUNCTION lockfence._create_guards(member regclass, by_statement boolean, arguments text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	guard name;
BEGIN
	IF by_statement THEN
		EXECUTE format('CREATE TRIGGER "~lockfence_statement" BEFORE INSERT OR UPDATE OR DELETE ON %s'
			' FOR EACH STATEMENT EXECUTE FUNCTION lockfence.guard_statement(%s)', member, arguments);
	ELSIF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = member AND tgname = '~lockfence_row') THEN
		EXECUTE format('CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON %s'
			' FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row(%s)', member, arguments);
	END IF;
	EXECUTE format('CREATE TRIGGER "~lockfence_truncate" BEFORE TRUNCATE ON %s'
		' FOR EACH STATEMENT EXECUTE FUNCTION lockfence.guard_truncate(%s)', member, arguments);
	FOR guard IN
		SELECT tgname FROM pg_trigger
		WHERE tgrelid = member AND tgname LIKE '~lockfence\_%' AND tgenabled <> 'A'
	LOOP
		EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %I', member, guard);
	END LOOP;
END
$$;
COMMENT ON FUNCTION lockfence._create_guards(regclass, boolean, text) IS
'creates the guards of one table and has them fire always';

CREATE FUNCTION lockfence.attach(
	target regclass,
	resource text DEFAULT NULL,
	token_column name DEFAULT NULL,
	accept text DEFAULT 'any',
	enforcement text DEFAULT 'fenced',
	missing text DEFAULT 'reject',
	repeat text DEFAULT 'accept',
	validator regprocedure DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	column_of_tokens name := coalesce(token_column, CASE WHEN resource IS NULL THEN 'fence' END);
	by_statement boolean := false;
	arguments text;
BEGIN
	IF target IS NULL THEN
		RAISE EXCEPTION 'target must not be null' USING ERRCODE = 'null_value_not_allowed';
	END IF;
	PERFORM lockfence._check_word('accept', accept, ARRAY['any', 'presented']);
	PERFORM lockfence._check_word('enforcement', enforcement, ARRAY['fenced', 'advisory']);
	PERFORM lockfence._check_word('missing', missing, ARRAY['reject', 'allow']);
	PERFORM lockfence._check_word('repeat', repeat, ARRAY['accept', 'reject']);
	IF repeat = 'reject' AND missing = 'allow' THEN
		RAISE EXCEPTION 'a single-use fence cannot let writes without a token pass'
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Use missing => ''reject'' with repeat => ''reject''.';
	END IF;

	PERFORM lockfence._check_member(member) FROM lockfence._family(target);
	EXECUTE format('LOCK TABLE %s IN %s MODE', target,
		CASE WHEN column_of_tokens IS NULL THEN 'SHARE ROW EXCLUSIVE' ELSE 'ACCESS EXCLUSIVE' END);
	PERFORM lockfence._check_member(member) FROM lockfence._family(target);

	IF resource IS NULL THEN
		IF (SELECT relpersistence FROM pg_class WHERE oid = target) = 'u' THEN
			PERFORM lockfence._refuse_target(target,
				'The marks of a row fence live in its rows, and an unlogged table is empty after a crash.',
				'Make the table logged, or name a resource.');
		END IF;
		IF validator IS NOT NULL THEN
			RAISE EXCEPTION 'a row fence cannot have a validator'
				USING ERRCODE = 'invalid_parameter_value',
					DETAIL = 'A validator is asked by the name of a lock, and a row has none.',
					HINT = 'Name a resource.';
		END IF;
	ELSE
		IF (SELECT relpersistence FROM pg_class WHERE oid = 'lockfence.mark'::regclass) <> 'p' THEN
			PERFORM lockfence._refuse_target(target,
				'lockfence.mark is unlogged: its marks would be gone after a crash.',
				'Run ALTER TABLE lockfence.mark SET LOGGED.');
		END IF;
		PERFORM lockfence._check_placeholders(target, resource, column_of_tokens);
		by_statement := column_of_tokens IS NULL
			AND cardinality(lockfence.template_columns(resource)) = 0;
	END IF;
	IF by_statement AND EXISTS (SELECT FROM pg_inherits WHERE inhrelid = target) THEN
		PERFORM lockfence._refuse_target(target,
			'A statement on its parent table would not fire the statement trigger of a constant fence.',
			'Fence the parent, or give the fence a token column.');
	END IF;
	IF validator IS NOT NULL THEN
		PERFORM lockfence._check_validator(validator);
	END IF;
	IF column_of_tokens IS NOT NULL THEN
		PERFORM lockfence._provide_token_column(target, column_of_tokens);
	END IF;

	arguments := lockfence._arguments(resource, column_of_tokens, accept, enforcement, missing,
		repeat, validator);
	PERFORM lockfence._create_guards(member, by_statement, arguments) FROM lockfence._family(target);
END
$$;
COMMENT ON FUNCTION lockfence.attach(regclass, text, name, text, text, text, text, regprocedure) IS
'fences a table with its partitions and children. resource null: every row is its own resource; with {column} placeholders: a named resource by row; without: one for the whole table. Changes metadata only. LF009 with the reason if the table cannot be fenced. Example: SELECT lockfence.attach(''batch'', ''settle:batch-{batch_id}'')';

CREATE FUNCTION lockfence.detach(target regclass)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	guard record;
	dropped integer := 0;
BEGIN
	IF EXISTS (SELECT FROM pg_trigger
		WHERE tgrelid = target AND tgname LIKE '~lockfence\_%' AND tgparentid <> 0) THEN
		RAISE EXCEPTION 'table "%" is fenced as a partition', target
			USING ERRCODE = 'wrong_object_type',
				HINT = format('Use lockfence.detach(%L).', pg_partition_root(target));
	END IF;
	FOR guard IN
		SELECT t.tgrelid::regclass AS member, t.tgname
		FROM lockfence._family(target) f JOIN pg_trigger t ON t.tgrelid = f.member
		WHERE t.tgname LIKE '~lockfence\_%' AND t.tgparentid = 0
		ORDER BY f.depth, f.member, t.tgname
	LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', guard.tgname, guard.member);
		dropped := dropped + 1;
	END LOOP;
	IF dropped = 0 THEN
		RAISE EXCEPTION 'table "%" is not fenced', target USING ERRCODE = 'undefined_object';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence.detach(regclass) IS
'takes the fence off a table, its partitions and children; the token column and the marks stay';

CREATE FUNCTION lockfence.reconcile(target regclass)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	token_column text;
	named boolean;
	found_mark record;
	before bigint;
	raised bigint := 0;
BEGIN
	SELECT f.token_column, f.resource IS NOT NULL INTO token_column, named
	FROM lockfence.fences f WHERE f.target = reconcile.target;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'table "%" is not fenced', target
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'Fence it by lockfence.attach().';
	END IF;
	IF NOT named OR token_column IS NULL THEN
		RETURN 0;
	END IF;
	FOR found_mark IN EXECUTE format(
		'SELECT lockfence.resource_of(%L, t) AS resource, max(t.%I) AS token FROM %s t'
		' WHERE t.%I > 0 GROUP BY 1 ORDER BY 1', target, token_column, target, token_column)
	LOOP
		before := lockfence._raise_mark(found_mark.resource, found_mark.token);
		IF before IS NULL OR before < found_mark.token THEN
			raised := raised + 1;
		END IF;
	END LOOP;
	RETURN raised;
END
$$;
COMMENT ON FUNCTION lockfence.reconcile(regclass) IS
'raises the marks of a named fence to the highest token stored in the rows, after ATTACH PARTITION or a restore without the marks; returns how many went up. Reads the whole table';

-- ---------------------------------------------------------------- guarded writes

CREATE FUNCTION lockfence.guarded_update(
	target regclass, key jsonb, changes jsonb, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_guarded_update';
COMMENT ON FUNCTION lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token) IS
'updates the rows of a fenced table that match the key, under the token; returns how many. A stale token is LF001 and never 0. Example: SELECT lockfence.guarded_update(''batch'', ''{"batch_id": 9921}'', ''{"state": "settled"}'', 281474976710698)';

CREATE FUNCTION lockfence.guarded_delete(
	target regclass, key jsonb, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_guarded_delete';
COMMENT ON FUNCTION lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token) IS
'deletes the rows of a fenced table that match the key, under the token; returns how many. A stale token is LF001 and never 0';

-- A token that comes with a write moves marks as present() does.
REVOKE ALL ON FUNCTION
	lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token),
	lockfence.guarded_delete(regclass, jsonb, lockfence.fence_token)
FROM PUBLIC;

-- ---------------------------------------------------------------- administration

CREATE FUNCTION lockfence._raise_mark(resource text, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_raise_mark_sql';
COMMENT ON FUNCTION lockfence._raise_mark(text, lockfence.fence_token) IS
'raises a mark to the token if it is lower; returns what stood before, the mark or else the floor, or null';

CREATE FUNCTION lockfence._reset_mark(resource text, token lockfence.fence_token)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_reset_mark';
COMMENT ON FUNCTION lockfence._reset_mark(text, lockfence.fence_token) IS
'sets a mark to the token, up or down; returns the mark before, or null';

CREATE FUNCTION lockfence._fold_mark(resource text, token lockfence.fence_token)
RETURNS boolean
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'lockfence_fold_mark';
COMMENT ON FUNCTION lockfence._fold_mark(text, lockfence.fence_token) IS
'removes a mark that still is the token and that no transaction holds; returns whether it did';

CREATE FUNCTION lockfence._log(action text, resource text, before bigint, after bigint, reason text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF reason IS NULL OR btrim(reason) = '' THEN
		RAISE EXCEPTION 'a reason is required'
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Say why, for whoever reads lockfence.admin_log later.';
	END IF;
	INSERT INTO lockfence.admin_log (action, resource, before, after, reason)
	VALUES (action, resource, before, after, reason);
END
$$;
COMMENT ON FUNCTION lockfence._log(text, text, bigint, bigint, text) IS
'writes a row of lockfence.admin_log; an error without a reason';

-- One row of lockfence.state, locked against other administrators.
CREATE FUNCTION lockfence._set_state(name text, value bigint)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint;
BEGIN
	LOCK TABLE lockfence.state IN SHARE ROW EXCLUSIVE MODE;
	SELECT s.value INTO before FROM lockfence.state s WHERE s.name = _set_state.name;
	IF value IS NULL THEN
		DELETE FROM lockfence.state s WHERE s.name = _set_state.name;
	ELSE
		INSERT INTO lockfence.state AS s VALUES (name, value)
		ON CONFLICT ON CONSTRAINT state_pkey DO UPDATE SET value = excluded.value;
	END IF;
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence._set_state(text, bigint) IS
'sets a value of lockfence.state (null: removes it); returns the one before';

CREATE FUNCTION lockfence.raise_mark(resource text, token lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint := lockfence._raise_mark(resource, token);
BEGIN
	IF before > token THEN
		RAISE EXCEPTION 'the mark of resource "%" is already higher', resource
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('It is %s; the token given is %s.', before, token),
				HINT = 'Every holder below it is fenced out. Use lockfence.reset_mark() to lower a mark.';
	END IF;
	PERFORM lockfence._log('raise_mark', resource, before, token, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.raise_mark(text, lockfence.fence_token, text) IS
'force-release: fences out every holder up to and including token - 1; returns the mark before (null: none). Waits for transactions that hold the resource. Logged with the reason';

CREATE FUNCTION lockfence.reset_mark(resource text, token lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint := lockfence._reset_mark(resource, token);
BEGIN
	PERFORM lockfence._log('reset_mark', resource, before, token, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.reset_mark(text, lockfence.fence_token, text) IS
'lowers a poisoned mark: sets it to the token of the holder that is to write next, and so lets in every token from there; returns the mark before. Logged with the reason';

CREATE FUNCTION lockfence.set_epoch(epoch integer, reason text)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint;
BEGIN
	IF epoch IS NULL OR epoch NOT BETWEEN 0 AND 32767 THEN
		RAISE EXCEPTION 'epoch % is out of range', quote_nullable(epoch)
			USING ERRCODE = 'LF003', DETAIL = 'It must be from 0 to 32767.';
	END IF;
	before := lockfence._set_state('epoch', epoch);
	IF before > epoch THEN
		RAISE EXCEPTION 'the epoch cannot go back from % to %', before, epoch
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Tokens of an ended epoch must stay refused. Advance the lock service''s epoch above it.';
	END IF;
	PERFORM lockfence._log('set_epoch', NULL, before, epoch, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.set_epoch(integer, text) IS
'sets the current epoch, only forward: tokens of an earlier one are stale for every resource (LF001), of a later one unknown (LF004); returns the one before (null: any epoch was accepted). Logged with the reason';

CREATE FUNCTION lockfence.reset_floor(token lockfence.fence_token, reason text)
RETURNS lockfence.fence_token
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	before bigint := lockfence._set_state('floor', token);
BEGIN
	PERFORM lockfence._log('reset_floor', NULL, before, token, reason);
	RETURN before;
END
$$;
COMMENT ON FUNCTION lockfence.reset_floor(lockfence.fence_token, text) IS
'sets the floor that stands for folded marks (null: none), for when prune() folded a poisoned one; returns the one before. Logged with the reason';

CREATE FUNCTION lockfence.prune(older_than interval)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	current_epoch bigint := (SELECT value FROM lockfence.state WHERE name = 'epoch');
	old_mark record;
	new_floor bigint;
	folded bigint := 0;
BEGIN
	IF older_than IS NULL OR older_than < interval '0' THEN
		RAISE EXCEPTION 'older_than must be an interval that is not negative'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	LOCK TABLE lockfence.state IN SHARE ROW EXCLUSIVE MODE;
	SELECT value INTO new_floor FROM lockfence.state WHERE name = 'floor';
	FOR old_mark IN
		SELECT m.resource, m.token FROM lockfence.mark m
		WHERE m.advanced_at < now() - older_than
			AND (current_epoch IS NULL OR lockfence.token_epoch(m.token) <= current_epoch)
		ORDER BY m.resource
	LOOP
		IF lockfence._fold_mark(old_mark.resource, old_mark.token) THEN
			new_floor := greatest(new_floor, old_mark.token);
			folded := folded + 1;
		END IF;
	END LOOP;
	IF folded > 0 THEN
		PERFORM lockfence._log('prune', NULL, lockfence._set_state('floor', new_floor), new_floor,
			format('%s marks older than %s', folded, older_than));
	END IF;
	RETURN folded;
END
$$;
COMMENT ON FUNCTION lockfence.prune(interval) IS
'folds marks that were last advanced longer ago into the floor, which then stands for every resource without a mark; returns how many. Marks that a transaction holds, or of an epoch after the current one, stay. Choose an age well above the longest time that one grant is held: renewals advance nothing';

REVOKE ALL ON FUNCTION
	lockfence._raise_mark(text, lockfence.fence_token),
	lockfence._reset_mark(text, lockfence.fence_token),
	lockfence._fold_mark(text, lockfence.fence_token),
	lockfence._log(text, text, bigint, bigint, text),
	lockfence._set_state(text, bigint),
	lockfence.raise_mark(text, lockfence.fence_token, text),
	lockfence.reset_mark(text, lockfence.fence_token, text),
	lockfence.set_epoch(integer, text),
	lockfence.reset_floor(lockfence.fence_token, text),
	lockfence.prune(interval),
	lockfence.reconcile(regclass)
FROM PUBLIC;

-- ---------------------------------------------------------------- holders

-- Field 4 of the locks is the class that lockfence uses, 0x4C46.  Who advances a
-- mark, or holds it by its tuple, keeps a lock on the table of marks instead.  A
-- prepared transaction shows itself by the lock on its own id.
CREATE VIEW lockfence.prepared_holds AS
SELECT p.gid, p.owner, p.prepared, l.database, l.classid, l.objid, l.objsubid
FROM pg_catalog.pg_locks l
	JOIN pg_catalog.pg_locks x
		ON x.virtualtransaction OPERATOR(pg_catalog.=) l.virtualtransaction
		AND x.pid IS NULL AND x.locktype OPERATOR(pg_catalog.=) 'transactionid'
	JOIN pg_catalog.pg_prepared_xacts p
		ON p.transaction OPERATOR(pg_catalog.=) x.transactionid
WHERE l.pid IS NULL AND (
	(l.locktype OPERATOR(pg_catalog.=) 'advisory'
		AND l.objsubid OPERATOR(pg_catalog.=) 19526)
	OR (l.locktype OPERATOR(pg_catalog.=) 'relation'
		AND l.relation OPERATOR(pg_catalog.=) 'lockfence.mark'::pg_catalog.regclass
		AND l.mode OPERATOR(pg_catalog.=) ANY (ARRAY['RowShareLock', 'RowExclusiveLock'])
		AND l.database OPERATOR(pg_catalog.=) (
			SELECT d.oid FROM pg_catalog.pg_database d
			WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())));
COMMENT ON VIEW lockfence.prepared_holds IS
'prepared transactions that hold a fenced resource until COMMIT PREPARED or ROLLBACK PREPARED, with the identity of the lock; null where the mark itself is what they hold';
GRANT SELECT ON lockfence.prepared_holds TO PUBLIC;
