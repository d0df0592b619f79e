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

-- Only for speed: what it leads to is checked, and the primary key decides.
CREATE INDEX mark_hash ON lockfence.mark USING hash (resource);
COMMENT ON INDEX lockfence.mark_hash IS
'by which the fence finds a mark quicker than by the primary key, which decides where this one is missing';

CREATE TABLE lockfence.state (
	name text COLLATE "C" NOT NULL,
	value bigint NOT NULL,
	CONSTRAINT state_pkey PRIMARY KEY (name),
	CONSTRAINT state_is_valid CHECK (
		(name OPERATOR(pg_catalog.=) 'epoch' AND value BETWEEN 0 AND 32767) OR
		(name OPERATOR(pg_catalog.=) ANY (ARRAY['floor', 'minimum']) AND value OPERATOR(pg_catalog.>) 0) OR
		(pg_catalog.starts_with(name, 'timeline:') AND value BETWEEN 1 AND 4294967295))
);
COMMENT ON TABLE lockfence.state IS
'what holds for every resource: the current epoch (no row: any); the minimum, a token below which none is accepted since reopen(); the floor, a token that stands for marks folded by prune() (no row: none); and, under the name of the cluster''s system identifier, the timeline that the fence has on record';

-- No primary key: data restored into a database with a log of its own brings ids
-- that are there already, and either record counts.
CREATE TABLE lockfence.admin_log (
	id bigint GENERATED ALWAYS AS IDENTITY,
	at timestamp with time zone NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	role name NOT NULL DEFAULT SESSION_USER,
	action text NOT NULL,
	resource text,
	before bigint,
	after bigint,
	reason text NOT NULL
);
COMMENT ON TABLE lockfence.admin_log IS
'every call of an administration function: when, who (the session''s role), what, the token or epoch before and after, and why';

SELECT pg_catalog.pg_extension_config_dump('lockfence.mark', '');
-- Not the timeline: it is true of these files only, and not of a database that a dump makes.
SELECT pg_catalog.pg_extension_config_dump('lockfence.state',
	'WHERE NOT pg_catalog.starts_with(name, ''timeline:'')');
SELECT pg_catalog.pg_extension_config_dump('lockfence.admin_log', '');
SELECT pg_catalog.pg_extension_config_dump('lockfence.admin_log_id_seq', '');

REVOKE ALL ON lockfence.mark, lockfence.state, lockfence.admin_log FROM PUBLIC;
-- Not to everybody: a client that reads the mark and presents it is no holder, and
-- would not be found out.
GRANT SELECT ON lockfence.mark, lockfence.state, lockfence.admin_log TO pg_monitor;

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

CREATE FUNCTION lockfence.merge_state() RETURNS trigger
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

CREATE FUNCTION lockfence.state_changed() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_state_changed';
COMMENT ON FUNCTION lockfence.state_changed() IS
'trigger of lockfence.state: makes every session read it again';

REVOKE ALL ON FUNCTION lockfence.guard_mark(), lockfence.guard_marks(),
	lockfence.merge_state(), lockfence.state_changed()
FROM PUBLIC;

CREATE TRIGGER "~lockfence_mark" BEFORE INSERT OR UPDATE OR DELETE ON lockfence.mark
FOR EACH ROW EXECUTE FUNCTION lockfence.guard_mark();
CREATE TRIGGER "~lockfence_marks" BEFORE TRUNCATE ON lockfence.mark
FOR EACH STATEMENT EXECUTE FUNCTION lockfence.guard_marks();
CREATE TRIGGER "~lockfence_merge" BEFORE INSERT ON lockfence.state
FOR EACH ROW EXECUTE FUNCTION lockfence.merge_state();
CREATE TRIGGER "~lockfence_state" AFTER INSERT OR UPDATE OR DELETE ON lockfence.state
FOR EACH ROW EXECUTE FUNCTION lockfence.state_changed();
ALTER TABLE lockfence.mark ENABLE ALWAYS TRIGGER "~lockfence_mark";
ALTER TABLE lockfence.mark ENABLE ALWAYS TRIGGER "~lockfence_marks";
ALTER TABLE lockfence.state ENABLE ALWAYS TRIGGER "~lockfence_merge";
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
	OUT missing text, OUT repeat text, OUT validator regprocedure,
	OUT advisory_since timestamp with time zone)
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
	OUT missing text, OUT repeat text, OUT validator regprocedure,
	OUT advisory_since timestamp with time zone)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	SELECT s.* INTO resource, token_column, accept, enforcement, missing, repeat, validator,
		advisory_since
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
		WHERE g.tgrelid OPERATOR(pg_catalog.=) c.oid
			AND g.tgfoid OPERATOR(pg_catalog.=) ANY (ARRAY[
				'lockfence.guard_row()'::pg_catalog.regprocedure::pg_catalog.oid,
				'lockfence.guard_statement()'::pg_catalog.regprocedure::pg_catalog.oid,
				'lockfence.guard_truncate()'::pg_catalog.regprocedure::pg_catalog.oid])
	) AS triggers
FROM pg_catalog.pg_trigger t
	JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
	CROSS JOIN LATERAL lockfence._settings(t.tgargs) s
WHERE t.tgfoid OPERATOR(pg_catalog.=) ANY (ARRAY[
	'lockfence.guard_row()'::pg_catalog.regprocedure::pg_catalog.oid,
	'lockfence.guard_statement()'::pg_catalog.regprocedure::pg_catalog.oid]);
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
			WHERE p.oid = validator)),
		(8, 'advisory_since', CASE enforcement WHEN 'advisory' THEN
			to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END)
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
	ELSIF before IS NULL THEN
		INSERT INTO lockfence.state VALUES (name, value);
	ELSE
		UPDATE lockfence.state s SET value = _set_state.value WHERE s.name = _set_state.name;
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
	lockfence._record_timeline(),
	lockfence.reopen(lockfence.fence_token, text),
	lockfence.prune(interval),
	lockfence.reconcile(regclass)
FROM PUBLIC;

SELECT lockfence._record_timeline();

-- ---------------------------------------------------------------- statistics

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

CREATE FUNCTION lockfence._refusals(
	OUT number bigint, OUT at timestamp with time zone, OUT database oid, OUT relid oid,
	OUT code text, OUT advisory boolean, OUT resource text, OUT token bigint, OUT mark bigint,
	OUT role oid, OUT application_name text, OUT client_addr text, OUT pid integer)
RETURNS SETOF record
LANGUAGE c VOLATILE ROWS 100
AS 'MODULE_PATHNAME', 'lockfence_refusal_rows';
COMMENT ON FUNCTION lockfence._refusals() IS
'the last refusals of every database; no rows without shared memory';

CREATE FUNCTION lockfence.stats_info(
	OUT available boolean, OUT max_tables bigint, OUT tables bigint, OUT evicted bigint,
	OUT max_refusals bigint, OUT refusals bigint, OUT overwritten bigint,
	OUT stats_reset timestamp with time zone)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_stats_info';
COMMENT ON FUNCTION lockfence.stats_info() IS
'whether there is shared memory for statistics; for how many tables, how many have counters and how many gave way to others; how many refusals are kept, were recorded and were overwritten; and since when';

CREATE FUNCTION lockfence.stats_reset()
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_stats_reset';
COMMENT ON FUNCTION lockfence.stats_reset() IS
'sets every counter of every database to 0 and forgets the last refusals';

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

CREATE VIEW lockfence.refusals AS
SELECT r.number, r.at, d.datname AS database,
	CASE WHEN d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
		THEN nullif(r.relid, 0)::pg_catalog.regclass END AS target,
	r.code, r.advisory, r.resource, r.token, r.mark, a.rolname AS role, r.application_name,
	r.client_addr, r.pid
FROM lockfence._refusals() r
	LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) r.database
	LEFT JOIN pg_catalog.pg_roles a ON a.oid OPERATOR(pg_catalog.=) r.role
ORDER BY r.number DESC;
COMMENT ON VIEW lockfence.refusals IS
'the last refusals of all databases, newest first: when, where, for which resource, the token presented, the mark it met, and who';

REVOKE ALL ON FUNCTION lockfence._refusals(), lockfence.stats_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lockfence._refusals() TO pg_monitor;
GRANT SELECT ON lockfence.stats TO PUBLIC;
GRANT SELECT ON lockfence.refusals TO pg_monitor;

-- ---------------------------------------------------------------- verification

-- Nearly everything here reads catalogs alone and must answer in whatever state it
-- finds them, so what was declared is read from the triggers' bytes again and
-- not by the function that takes them at their word.

CREATE TYPE lockfence._finding AS (
	target regclass, severity text, code text, problem text, remedy text);
COMMENT ON TYPE lockfence._finding IS
'a row of verify()';

CREATE TYPE lockfence._guard AS (
	id oid, member regclass, name name, parent oid, enabled "char", kind text, proper_name name,
	function regproc, is_ours boolean, is_whole boolean, has_columns boolean, has_condition boolean,
	settings jsonb, fault text);
COMMENT ON TYPE lockfence._guard IS
'a guard and what is right with it; is_whole: it fires before every event that it is there for';

CREATE TYPE lockfence._member AS (
	member regclass, root regclass, settings jsonb, kinds text[], is_guarded boolean);
COMMENT ON TYPE lockfence._member IS
'a table that verify() looks at, and its fence: the topmost table that has it (null: none), its settings and the kinds of guards it takes';

-- pg_trigger.tgargs: each argument is ended by a zero byte.
CREATE FUNCTION lockfence._argument_list(arguments bytea)
RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	bytes text := regexp_replace(encode(arguments, 'hex'), '(..)', E'\\1 ', 'g');
	pieces text[] := string_to_array(bytes, '00 ');
BEGIN
	RETURN ARRAY(
		SELECT convert_from(decode(p.hex, 'hex'), getdatabaseencoding())
		FROM unnest(pieces[:cardinality(pieces) - 1]) WITH ORDINALITY AS p (hex, place)
		ORDER BY p.place);
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION lockfence._argument_list(bytea) IS
'a trigger''s arguments; null if they are no text';

CREATE FUNCTION lockfence._declared(arguments bytea)
RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(jsonb_object_agg(s.setting, s.value ORDER BY s.place), '{}')
	FROM (
		SELECT split_part(a.argument, '=', 1), substr(a.argument, strpos(a.argument, '=') + 1), a.place
		FROM unnest(lockfence._argument_list(arguments)) WITH ORDINALITY AS a (argument, place)
	) AS s (setting, value, place)
	WHERE s.setting IN ('resource', 'token_column', 'validator')
		OR (s.setting, s.value) IN (('accept', 'presented'), ('enforcement', 'advisory'),
			('missing', 'allow'), ('repeat', 'reject'))
$$;
COMMENT ON FUNCTION lockfence._declared(bytea) IS
'what can be made out of a guard''s arguments, without what is as by default';

-- The validator is left out: whether it exists is a question of its own.
CREATE FUNCTION lockfence._fault(arguments bytea, number integer)
RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	list text[] := lockfence._argument_list(arguments);
	settings jsonb := lockfence._declared(arguments);
BEGIN
	IF list IS NULL OR cardinality(list) <> number THEN
		RETURN 'they cannot be read';
	END IF;
	PERFORM lockfence.fence_settings(coalesce((
		SELECT string_agg(convert_to(a.argument, getdatabaseencoding()) || decode('00', 'hex'), '')
		FROM unnest(list) AS a (argument)
		WHERE split_part(a.argument, '=', 1) <> 'validator'), ''));
	PERFORM lockfence.template_columns(settings ->> 'resource');
	RETURN CASE
		WHEN NOT settings ?| ARRAY['resource', 'token_column']
			THEN 'they name neither a resource nor a token column'
		WHEN settings ?& ARRAY['repeat', 'missing']
			THEN 'a single-use fence cannot let writes without a token pass'
	END;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END
$$;
COMMENT ON FUNCTION lockfence._fault(bytea, integer) IS
'why a guard''s arguments declare no fence; null if they do';

-- A guard is what calls a function of ours, or stands where such a one belongs.
CREATE FUNCTION lockfence._guards(tables regclass[])
RETURNS SETOF lockfence._guard
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT t.oid, t.tgrelid, t.tgname, t.tgparentid, t.tgenabled, k.kind, k.name,
		t.tgfoid, t.tgfoid = k.function, t.tgtype = k.type, t.tgattr::text <> '', t.tgqual IS NOT NULL,
		lockfence._declared(t.tgargs), lockfence._fault(t.tgargs, t.tgnargs)
	FROM pg_trigger t
		JOIN (VALUES
			('row', '~lockfence_row'::name, 'lockfence.guard_row()'::regprocedure, 31),
			('statement', '~lockfence_statement', 'lockfence.guard_statement()', 30),
			('truncate', '~lockfence_truncate', 'lockfence.guard_truncate()', 34)
		) AS k (kind, name, function, type)
			ON t.tgfoid = k.function
			OR t.tgname = k.name AND t.tgfoid NOT IN ('lockfence.guard_row()'::regprocedure,
				'lockfence.guard_statement()'::regprocedure, 'lockfence.guard_truncate()'::regprocedure)
	WHERE t.tgrelid = ANY (tables)
$$;
COMMENT ON FUNCTION lockfence._guards(regclass[]) IS
'the guards of some tables';

-- Fenced, or with a column that says it should be.
CREATE FUNCTION lockfence._fenced_tables()
RETURNS SETOF regclass
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid::regclass
	FROM pg_class c
	WHERE c.relnamespace <> 'lockfence'::regnamespace
		AND (c.oid IN (
				SELECT tgrelid FROM pg_trigger
				WHERE tgname IN ('~lockfence_row', '~lockfence_statement', '~lockfence_truncate')
					OR tgfoid IN ('lockfence.guard_row()'::regprocedure, 'lockfence.guard_statement()'::regprocedure,
						'lockfence.guard_truncate()'::regprocedure))
			OR c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND c.oid IN (
				SELECT attrelid FROM pg_attribute
				WHERE atttypid = 'lockfence.fence_token'::regtype AND NOT attisdropped))
$$;
COMMENT ON FUNCTION lockfence._fenced_tables() IS
'the tables that have a guard or a column of type lockfence.fence_token';

CREATE FUNCTION lockfence._ancestors(member regclass)
RETURNS TABLE (ancestor regclass, height integer)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE line AS (
		SELECT member::oid AS relid, 0 AS height
		UNION ALL
		SELECT i.inhparent, l.height + 1
		FROM line l JOIN pg_inherits i ON i.inhrelid = l.relid
	)
	SELECT relid::regclass, max(height) FROM line GROUP BY relid
$$;
COMMENT ON FUNCTION lockfence._ancestors(regclass) IS
'a table with the tables that it is a partition of or inherits from';

CREATE FUNCTION lockfence._placeholders(settings jsonb)
RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN lockfence.template_columns(settings ->> 'resource');
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION lockfence._placeholders(jsonb) IS
'the columns that name a fence''s resource; null if it has none or it makes no sense';

CREATE FUNCTION lockfence._kinds(settings jsonb)
RETURNS text[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE
		WHEN settings ? 'token_column' OR lockfence._placeholders(settings) <> '{}'
			THEN ARRAY['row', 'truncate']
		WHEN lockfence._placeholders(settings) = '{}' THEN ARRAY['statement', 'truncate']
		ELSE ARRAY['truncate']
	END
$$;
COMMENT ON FUNCTION lockfence._kinds(jsonb) IS
'the kinds of guards that a fence consists of, as far as its settings tell';

-- A fence reaches from its topmost table down, so that the tables asked for
-- are looked at with all that they are related to.
CREATE FUNCTION lockfence._relatives(tables regclass[])
RETURNS SETOF regclass
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE up AS (
		SELECT t.relid::oid FROM unnest(tables) AS t (relid)
		UNION
		SELECT i.inhparent FROM up u JOIN pg_inherits i ON i.inhrelid = u.relid
	), down AS (
		SELECT relid FROM up
		UNION
		SELECT i.inhrelid FROM down d JOIN pg_inherits i ON i.inhparent = d.relid
	)
	SELECT relid::regclass FROM down
$$;
COMMENT ON FUNCTION lockfence._relatives(regclass[]) IS
'tables with their parents and all of their partitions and children';

-- The topmost table says what the fence is.  Of two guards the stricter is believed.
CREATE FUNCTION lockfence._members(tables regclass[], guards lockfence._guard[])
RETURNS SETOF lockfence._member
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE line AS (
		SELECT t.member, t.member::oid AS ancestor, 0 AS height FROM unnest(tables) AS t (member)
		UNION ALL
		SELECT l.member, i.inhparent, l.height + 1
		FROM line l JOIN pg_inherits i ON i.inhrelid = l.ancestor
	), rooted AS MATERIALIZED (
		SELECT DISTINCT ON (member) member, ancestor::regclass AS root, height AS depth
		FROM line
		WHERE ancestor IN (SELECT g.member FROM unnest(guards) g)
		ORDER BY member, height DESC, ancestor
	), declared AS MATERIALIZED (
		SELECT DISTINCT ON (r.root) r.root, g.settings, lockfence._kinds(g.settings) AS kinds
		FROM rooted r JOIN unnest(guards) g ON g.member = r.member
		ORDER BY r.root, g.fault IS NOT NULL, NOT g.is_ours, r.depth,
			(g.settings ? 'enforcement')::integer + (g.settings ? 'missing')::integer,
			g.kind = 'truncate', g.id
	)
	SELECT t.member, d.root, d.settings, d.kinds, t.member IN (SELECT g.member FROM unnest(guards) g)
	FROM unnest(tables) AS t (member)
		LEFT JOIN rooted r ON r.member = t.member
		LEFT JOIN declared d ON d.root = r.root
$$;
COMMENT ON FUNCTION lockfence._members(regclass[], lockfence._guard[]) IS
'tables with the fence of each';

-- Remedies.  Those that need several statements can be run as one string.

CREATE FUNCTION lockfence._attach_call(target regclass, settings jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('lockfence.attach(%L%s)', target,
		string_agg(format(', %s => %L', s.setting, s.value), '' ORDER BY s.place))
	FROM (VALUES
		(1, 'resource', settings ->> 'resource'),
		(2, 'token_column', CASE WHEN settings ? 'resource' THEN settings ->> 'token_column'
			ELSE nullif(settings ->> 'token_column', 'fence') END),
		(3, 'accept', settings ->> 'accept'),
		(4, 'enforcement', settings ->> 'enforcement'),
		(5, 'missing', CASE WHEN NOT settings ? 'repeat' THEN settings ->> 'missing' END),
		(6, 'repeat', settings ->> 'repeat'),
		(7, 'validator', CASE WHEN settings ? 'resource' THEN settings ->> 'validator' END)
	) AS s (place, setting, value)
	WHERE s.value IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._attach_call(regclass, jsonb) IS
'the call of attach() that makes a fence with the settings';

-- One statement, so that no write comes between the old fence and the new.
-- detach() finds guards by their names: those of other names go last.
CREATE FUNCTION lockfence._redeclare(target regclass, settings jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH guard AS (
		SELECT t.tgrelid::regclass AS member, t.tgname, t.tgname LIKE '~lockfence@_%' ESCAPE '@' AS is_named
		FROM lockfence._family(target) f JOIN pg_trigger t ON t.tgrelid = f.member
		WHERE t.tgparentid = 0 AND (t.tgname LIKE '~lockfence@_%' ESCAPE '@'
			OR t.tgfoid IN ('lockfence.guard_row()'::regprocedure, 'lockfence.guard_statement()'::regprocedure,
				'lockfence.guard_truncate()'::regprocedure))
	)
	SELECT CASE
		WHEN settings ?| ARRAY['resource', 'token_column'] THEN
			concat('SELECT ',
				(SELECT format('lockfence.detach(%L), ', target) FROM guard WHERE is_named LIMIT 1),
				lockfence._attach_call(target, settings), ';',
				(SELECT string_agg(format(E'\nDROP TRIGGER IF EXISTS %I ON %s;', tgname, member), ''
					ORDER BY member, tgname) FROM guard WHERE NOT is_named))
		ELSE concat('-- Nothing tells the settings; state them: SELECT ',
			(SELECT format('lockfence.detach(%L), ', target) FROM guard WHERE is_named LIMIT 1),
			format('lockfence.attach(%L, ...);', target))
	END
$$;
COMMENT ON FUNCTION lockfence._redeclare(regclass, jsonb) IS
'the statement that replaces whatever guards a table''s family has by a fence with the settings';

CREATE FUNCTION lockfence._argument_text(settings jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(quote_literal(s.setting || '=' || s.value), ', '
		ORDER BY array_position(ARRAY['resource', 'token_column', 'accept', 'enforcement', 'missing',
			'repeat', 'validator'], s.setting))
	FROM jsonb_each_text(settings) AS s (setting, value)
$$;
COMMENT ON FUNCTION lockfence._argument_text(jsonb) IS
'a fence''s settings as the arguments of its triggers';

CREATE FUNCTION lockfence._create_guard(member regclass, kind text, settings jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format(E'CREATE TRIGGER "~lockfence_%1$s" BEFORE %2$s ON %3$s FOR EACH %4$s EXECUTE FUNCTION lockfence.guard_%1$s(%5$s);\n'
			'ALTER TABLE %3$s ENABLE ALWAYS TRIGGER "~lockfence_%1$s";',
		kind,
		CASE kind WHEN 'truncate' THEN 'TRUNCATE' ELSE 'INSERT OR UPDATE OR DELETE' END,
		member,
		CASE kind WHEN 'row' THEN 'ROW' ELSE 'STATEMENT' END,
		lockfence._argument_text(settings))
$$;
COMMENT ON FUNCTION lockfence._create_guard(regclass, text, jsonb) IS
'the statements that create one guard of a fence';

-- A partition has its row guard from its parent.
CREATE FUNCTION lockfence._add_guards(member regclass, root regclass, kinds text[], settings jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE
		WHEN 'row' = ANY (kinds) AND (
				SELECT relkind = 'p' OR relispartition FROM pg_class WHERE oid = member)
			OR NOT settings ?| ARRAY['resource', 'token_column']
			THEN lockfence._redeclare(root, settings)
		ELSE (
			SELECT string_agg(lockfence._create_guard(member, k.kind, settings), E'\n' ORDER BY k.kind)
			FROM unnest(kinds) AS k (kind))
	END
$$;
COMMENT ON FUNCTION lockfence._add_guards(regclass, regclass, text[], jsonb) IS
'the statements that give a table the guards that it lacks';

-- The trigger that a cloned one has its name from, on 15 and later.
CREATE FUNCTION lockfence._original(trigger oid)
RETURNS oid
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE line AS (
		SELECT oid, tgparentid FROM pg_trigger WHERE oid = trigger
		UNION ALL
		SELECT t.oid, t.tgparentid
		FROM line l JOIN pg_trigger t ON t.oid = l.tgparentid
		WHERE current_setting('server_version_num')::integer >= 150000
	)
	SELECT l.oid FROM line l WHERE NOT EXISTS (SELECT FROM line p WHERE p.oid = l.tgparentid)
$$;
COMMENT ON FUNCTION lockfence._original(oid) IS
'the trigger to rename for a trigger of a partition to be renamed';

CREATE FUNCTION lockfence._rename(trigger oid, new_name name)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('ALTER TRIGGER %I ON %s RENAME TO %I;', tgname, tgrelid::regclass, new_name)
	FROM pg_trigger WHERE oid = lockfence._original(trigger)
$$;
COMMENT ON FUNCTION lockfence._rename(oid, name) IS
'the statement that renames a trigger';

-- Clones are reported where the one that they follow is not.
CREATE FUNCTION lockfence._follows(trigger oid, members lockfence._member[])
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT EXISTS (
		SELECT FROM pg_trigger
		WHERE oid = lockfence._original(trigger) AND oid <> trigger
			AND tgrelid IN (SELECT m.member FROM unnest(members) m))
$$;
COMMENT ON FUNCTION lockfence._follows(oid, lockfence._member[]) IS
'whether a trigger is renamed along with one of another table among the given';

-- Subjects.

CREATE FUNCTION lockfence._verify_kin(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.member, 'error', 'foreign_leaf',
		format('%s is a foreign table under a fenced one: its rows can be written without this server.', f.member),
		(SELECT format(CASE WHEN c.relispartition THEN 'ALTER TABLE %s DETACH PARTITION %s;'
				ELSE 'ALTER FOREIGN TABLE %2$s NO INHERIT %1$s;' END, i.inhparent::regclass, f.member)
			FROM pg_inherits i WHERE i.inhrelid = f.member ORDER BY i.inhseqno LIMIT 1)
	FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
	WHERE c.relkind = 'f' AND f.root IS NOT NULL
	UNION ALL
	SELECT f.member, 'error', CASE WHEN c.relispartition THEN 'unfenced_leaf' ELSE 'unfenced_child' END,
		format('%s has no guard, though %s is fenced: a statement on it passes unchecked.', f.member, f.root),
		lockfence._add_guards(f.member, f.root, f.kinds, f.settings)
	FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
	WHERE c.relkind <> 'f' AND f.root IS NOT NULL AND NOT f.is_guarded
	UNION ALL
	SELECT f.member, 'error', 'unfenced_parent',
		format('%s is fenced by a statement trigger, which a statement on its parent %s does not fire.',
			f.member, i.inhparent::regclass),
		lockfence._redeclare(
			(SELECT ancestor FROM lockfence._ancestors(f.member) ORDER BY height DESC, ancestor LIMIT 1), f.settings)
	FROM unnest(members) f JOIN pg_inherits i ON i.inhrelid = f.member
	WHERE f.member = f.root AND 'statement' = ANY (f.kinds)
$$;
COMMENT ON FUNCTION lockfence._verify_kin(lockfence._member[]) IS
'findings of verify(): partitions, inheritance children and parents that the fence does not reach';

CREATE FUNCTION lockfence._verify_unfenced(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT m.member, 'error', 'guard_missing', p.problem,
		CASE WHEN c.relkind IN ('r', 'p') THEN p.advice || lockfence._redeclare(m.member, p.settings) END
	FROM unnest(members) m
		LEFT JOIN pg_class c ON c.oid = m.member
		LEFT JOIN LATERAL (
			SELECT attname FROM pg_attribute
			WHERE attrelid = c.oid AND NOT attisdropped AND atttypid = 'lockfence.fence_token'::regtype
			ORDER BY attnum LIMIT 1
		) AS a ON true
		CROSS JOIN LATERAL (
			SELECT CASE
					WHEN a.attname IS NULL THEN format('%s is not fenced.', m.member)
					ELSE format('%s has a token column, "%s", but no guard: nothing refuses a stale write.',
						m.member, a.attname)
				END,
				CASE WHEN a.attname IS NOT NULL
					THEN E'-- This makes a row fence. Add resource => ... if the table had a named one.\n' ELSE '' END,
				CASE WHEN a.attname IS NULL THEN '{}' ELSE jsonb_build_object('token_column', a.attname) END
		) AS p (problem, advice, settings)
	WHERE m.root IS NULL AND NOT EXISTS (
		SELECT FROM pg_inherits i JOIN unnest(members) p ON p.member = i.inhparent WHERE i.inhrelid = m.member)
$$;
COMMENT ON FUNCTION lockfence._verify_unfenced(lockfence._member[]) IS
'findings of verify(): tables without any guard';

CREATE FUNCTION lockfence._verify_guard_states(members lockfence._member[], guards lockfence._guard[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.member, 'error', 'guard_missing',
		format('%s has no %s guard: %s', f.member, k.kind, CASE k.kind
			WHEN 'truncate' THEN 'TRUNCATE takes its rows without a token.'
			ELSE 'INSERT, UPDATE and DELETE pass unchecked.' END),
		lockfence._add_guards(f.member, f.root, ARRAY[k.kind], f.settings)
	FROM unnest(members) f
		JOIN pg_class c ON c.oid = f.member
		CROSS JOIN unnest(f.kinds) AS k (kind)
	WHERE c.relkind <> 'f' AND f.is_guarded
		AND NOT EXISTS (SELECT FROM unnest(guards) g WHERE g.member = f.member AND g.kind = k.kind)
	UNION ALL
	SELECT g.member, 'error', CASE g.enabled WHEN 'D' THEN 'guard_disabled' ELSE 'guard_not_always' END,
		format('Guard "%s" of %s %s', g.name, g.member, CASE g.enabled
			WHEN 'D' THEN 'is disabled: writes pass unchecked.'
			WHEN 'R' THEN 'fires under session_replication_role = replica only: ordinary writes pass unchecked.'
			ELSE 'does not fire under session_replication_role = replica.' END),
		format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;', g.member, g.name)
	FROM unnest(guards) g
	WHERE g.enabled <> 'A'
	UNION ALL
	SELECT g.member, 'error', v.code, format('Guard "%s" of %s %s', g.name, g.member, v.problem),
		lockfence._redeclare(f.root, f.settings)
	FROM unnest(guards) g JOIN unnest(members) f ON f.member = g.member
		CROSS JOIN LATERAL (VALUES
			(g.has_columns, 'guard_update_of', 'fires on UPDATE OF some columns only: an update of others passes unchecked.'),
			(g.has_condition, 'guard_when', 'has a WHEN condition: writes for which it is not true pass unchecked.')
		) AS v (found, code, problem)
	WHERE v.found
$$;
COMMENT ON FUNCTION lockfence._verify_guard_states(lockfence._member[], lockfence._guard[]) IS
'findings of verify(): guards that are absent or do not fire for every write';

CREATE FUNCTION lockfence._verify_guard_names(members lockfence._member[], guards lockfence._guard[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	WITH guard AS (
		SELECT g.*, row_number() OVER (PARTITION BY g.member, g.kind ORDER BY g.name <> g.proper_name, g.id) AS place
		FROM unnest(guards) g
		WHERE g.is_ours
	)
	SELECT g.member, 'warning', 'guard_renamed',
		format('Guard "%s" of %s is not named "%s": the guarded functions and detach() do not find it, and it may not fire last.',
			g.name, g.member, g.proper_name),
		lockfence._rename(g.id, g.proper_name)
	FROM guard g
	WHERE g.place = 1 AND g.name <> g.proper_name AND NOT lockfence._follows(g.id, members)
	UNION ALL
	SELECT g.member, 'warning', 'guard_duplicate',
		format('Trigger "%s" of %s is a second %s guard: each write is decided twice, maybe not alike.',
			g.name, g.member, g.kind),
		lockfence._redeclare(f.root, f.settings)
	FROM guard g JOIN unnest(members) f ON f.member = g.member
	WHERE g.place > 1
$$;
COMMENT ON FUNCTION lockfence._verify_guard_names(lockfence._member[], lockfence._guard[]) IS
'findings of verify(): guards whose names are not as attach() makes them';

CREATE FUNCTION lockfence._verify_guard_contents(members lockfence._member[], guards lockfence._guard[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT g.member, 'error', 'guard_altered',
		format('Guard "%s" of %s %s.', g.name, g.member, a.reason), lockfence._redeclare(f.root, f.settings)
	FROM unnest(guards) g JOIN unnest(members) f ON f.member = g.member
		CROSS JOIN LATERAL (
			SELECT CASE
				WHEN NOT g.is_ours THEN format('calls %s instead of lockfence.guard_%s', g.function, g.kind)
				WHEN NOT g.is_whole THEN format('does not fire BEFORE %s FOR EACH %s',
					CASE g.kind WHEN 'truncate' THEN 'TRUNCATE' ELSE 'INSERT OR UPDATE OR DELETE' END,
					CASE g.kind WHEN 'row' THEN 'ROW' ELSE 'STATEMENT' END)
				WHEN g.fault IS NOT NULL THEN format('has arguments that declare no fence: %s', g.fault)
				WHEN g.settings <> f.settings THEN format('declares (%s), but the fence of %s is (%s)',
					lockfence._argument_text(g.settings), f.root, lockfence._argument_text(f.settings))
				WHEN g.kind <> ALL (f.kinds)
					THEN format('is a %s trigger, which cannot decide for this fence', g.kind)
			END
		) AS a (reason)
	WHERE a.reason IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._verify_guard_contents(lockfence._member[], lockfence._guard[]) IS
'findings of verify(): guards that do something else than the fence declares';

CREATE FUNCTION lockfence._verify_neighbours(members lockfence._member[], guards lockfence._guard[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.member, CASE r.ev_enabled WHEN 'D' THEN 'warning' ELSE 'error' END, 'rule',
		format('Rule "%s" of %s can send a write past the guards.', r.rulename, f.member),
		format('DROP RULE %I ON %s;', r.rulename, f.member)
	FROM unnest(members) f JOIN pg_rewrite r ON r.ev_class = f.member
	WHERE r.ev_type <> '1' AND f.root IS NOT NULL
	UNION ALL
	SELECT t.tgrelid, 'error', 'later_trigger',
		format('Trigger "%s" of %s fires after the guard and can change what the guard has checked.',
			t.tgname, t.tgrelid::regclass),
		lockfence._rename(t.oid, ('z_' || t.tgname)::name)
	FROM (
		SELECT g.member, max(g.name::text COLLATE "C") FROM unnest(guards) g WHERE g.kind = 'row' GROUP BY g.member
	) AS f (member, guard) JOIN pg_trigger t ON t.tgrelid = f.member
	WHERE t.tgenabled <> 'D' AND t.tgtype & 3 = 3 AND t.tgtype & 20 <> 0
		AND t.tgname::text COLLATE "C" > f.guard
		AND t.oid NOT IN (SELECT g.id FROM unnest(guards) g)
		AND NOT lockfence._follows(t.oid, members)
$$;
COMMENT ON FUNCTION lockfence._verify_neighbours(lockfence._member[], lockfence._guard[]) IS
'findings of verify(): rules and triggers that act after or instead of the guards';

-- A column is changed where it was declared.
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
		SELECT f.member, f.root, f.settings, f.settings ->> 'token_column' AS token_column
		FROM unnest(members) f
		WHERE f.settings ? 'token_column'
	)
	SELECT f.member, 'warning', 'token_column_missing',
		format('Token column "%s" of %s does not exist: every write is refused.', f.token_column, f.member)
			|| CASE WHEN o.column_name IS NULL THEN ' The remedy adds an empty one.' ELSE
				format(' The remedy takes "%s", the one column of type lockfence.fence_token.', o.column_name) END,
		lockfence._redeclare(f.root, f.settings || CASE WHEN o.column_name IS NULL THEN '{}'
			ELSE jsonb_build_object('token_column', o.column_name) END)
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
			WHEN 'identity' THEN 'is an identity column: it presents tokens that nobody holds.'
			WHEN 'default' THEN 'has a default: it presents a token that nobody holds.'
			ELSE 'is a generated column: every write is refused.' END),
		format(CASE u.fault
				WHEN 'type' THEN 'ALTER TABLE %1$s ALTER COLUMN %2$I TYPE lockfence.fence_token USING %2$I::bigint;'
				WHEN 'identity' THEN 'ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY;'
				WHEN 'default' THEN 'ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT;'
				WHEN 'stored' THEN 'ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION;'
				ELSE E'ALTER TABLE %s DROP COLUMN %I;\n%s' END,
			h.home, u.token_column,
			CASE u.fault WHEN 'virtual' THEN lockfence._redeclare(u.root, u.settings) END)
	FROM (
		SELECT f.*, format_type(a.atttypid, a.atttypmod), v.severity, v.fault
		FROM fence f
			JOIN pg_attribute a ON a.attrelid = f.member AND a.attname = f.token_column
				AND a.attnum > 0 AND NOT a.attisdropped
			CROSS JOIN LATERAL (VALUES
				('warning', 'type', a.atttypid NOT IN ('bigint'::regtype, 'lockfence.fence_token'::regtype)),
				('warning', 'stored', a.attgenerated = 's'),
				('warning', 'virtual', a.attgenerated NOT IN ('', 's')),
				('error', 'identity', a.attidentity <> ''),
				('error', 'default', a.atthasdef AND a.attgenerated = '')
			) AS v (severity, fault, found)
		WHERE v.found
	) AS u (member, root, settings, token_column, type, severity, fault)
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
			CROSS JOIN unnest(lockfence._placeholders(f.settings)) AS p (name)
			LEFT JOIN pg_attribute a ON a.attrelid = f.member AND a.attname = p.name
				AND a.attnum > 0 AND NOT a.attisdropped
	)
	SELECT p.member, 'warning', 'placeholder_missing',
		format('%s has no column "%s", which its resource "%s" names: every write is refused.',
			p.member, p.name, p.settings ->> 'resource'),
		format(E'-- Name the column that holds it now in place of {%s}.\n%s',
			p.name, lockfence._redeclare(p.root, p.settings))
	FROM placeholder p
	WHERE p.attgenerated IS NULL
	UNION ALL
	SELECT p.member, 'warning', 'placeholder_unfit',
		format('Column "%s" of %s, which its resource "%s" names, is a generated column: every write is refused.',
			p.name, p.member, p.settings ->> 'resource'),
		CASE p.attgenerated
			WHEN 's' THEN format('ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION;', h.home, p.name)
			ELSE format(E'-- Name the columns that it is computed from in place of {%s}.\n%s',
				p.name, lockfence._redeclare(p.root, p.settings)) END
	FROM placeholder p CROSS JOIN LATERAL lockfence._column_home(p.member, p.name) AS h (home)
	WHERE p.attgenerated <> '' AND (h.home = p.member OR h.home NOT IN (SELECT m.member FROM unnest(members) m))
	UNION ALL
	SELECT p.member, 'error', 'placeholder_unfit',
		format('Column "%s" of %s is both the token and part of the resource "%s": every token has a mark of its own.',
			p.name, p.member, p.settings ->> 'resource'),
		format(E'-- Name another column in place of {%s}.\n%s', p.name, lockfence._redeclare(p.root, p.settings))
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
		format('ALTER TABLE %s SET LOGGED;', f.member)
	FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
	WHERE c.relkind = 'r' AND c.relpersistence = 'u' AND NOT f.settings ? 'resource'
		AND f.settings ? 'token_column'
	UNION ALL
	SELECT f.member, 'info', v.code, format('The fence of %s %s', f.member, v.problem),
		lockfence._redeclare(f.root, f.settings - v.setting)
	FROM unnest(members) f
		JOIN (VALUES
			('enforcement', 'advisory', 'is advisory: it reports stale writes and lets them pass.'),
			('missing', 'missing_allowed', 'lets writes without a token pass.')
		) AS v (setting, code, problem) ON f.settings ? v.setting
	WHERE f.member = f.root
	UNION ALL
	SELECT f.member, 'warning', 'advisory_long',
		format('The fence of %s has been advisory since %s, which is more than 30 days.',
			f.member, min(a.advisory_since)),
		lockfence._redeclare(f.root, f.settings - 'enforcement')
	FROM unnest(members) f JOIN lockfence.fences a ON a.target = f.member
	WHERE f.member = f.root AND f.settings ? 'enforcement'
		AND a.advisory_since < now() - interval '30 days'
	GROUP BY f.member, f.root, f.settings
$$;
COMMENT ON FUNCTION lockfence._verify_choices(lockfence._member[]) IS
'findings of verify(): what a fence was declared to let pass, and marks that a crash would lose';

-- null: there is none; 0: the role that asks may not look into its schema.
CREATE FUNCTION lockfence._find_validator(signature text)
RETURNS regprocedure
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN to_regprocedure(signature);
EXCEPTION
	WHEN insufficient_privilege THEN
		RETURN 0;
	WHEN OTHERS THEN
		RETURN NULL;
END
$$;
COMMENT ON FUNCTION lockfence._find_validator(text) IS
'the function that a fence names as its validator';

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
		E'-- Create it again, or go on without one:\n' || lockfence._redeclare(a.root, a.settings - 'validator')
	FROM asked a
	WHERE a.validator IS NULL
	UNION ALL
	SELECT a.member, 'error', 'validator_unfit',
		format('Validator %s of %s is not a function of a resource and a token that returns boolean.',
			a.signature, a.member),
		E'-- Create it as one, or go on without one:\n' || lockfence._redeclare(a.root, a.settings - 'validator')
	FROM asked a JOIN pg_proc p ON p.oid = a.validator
	WHERE p.prokind <> 'f' OR p.proretset OR p.prorettype <> 'boolean'::regtype
		OR p.pronargs <> 2 OR p.proargtypes[0] <> 'text'::regtype
		OR p.proargtypes[1] NOT IN ('lockfence.fence_token'::regtype, 'bigint'::regtype)
	UNION ALL
	SELECT a.member, 'warning', 'validator_not_executable',
		format('The owner of %s may not execute its validator %s: every write is refused.', a.member, a.signature),
		format('GRANT EXECUTE ON FUNCTION %s TO %I;', a.signature, pg_get_userbyid(a.relowner))
	FROM asked a JOIN pg_proc p ON p.oid = a.validator
	WHERE NOT has_function_privilege(a.relowner, p.oid, 'EXECUTE')
	UNION ALL
	SELECT a.member, 'warning', 'validator_not_executable',
		format('The owner of %s may not use the schema of its validator %s: every write is refused.',
			a.member, a.signature),
		format('GRANT USAGE ON SCHEMA %I TO %I;', n.nspname, pg_get_userbyid(a.relowner))
	FROM asked a JOIN pg_proc p ON p.oid = a.validator JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE NOT has_schema_privilege(a.relowner, n.oid, 'USAGE')
$$;
COMMENT ON FUNCTION lockfence._verify_validator(lockfence._member[]) IS
'findings of verify(): validators that cannot be asked';

CREATE FUNCTION lockfence._grantee(role oid)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(role)) END
$$;
COMMENT ON FUNCTION lockfence._grantee(oid) IS
'a role as GRANT and REVOKE take it';

CREATE FUNCTION lockfence._is_outsider(role oid, owner oid)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT role <> owner AND NOT coalesce((SELECT rolsuper FROM pg_roles WHERE oid = role), false)
$$;
COMMENT ON FUNCTION lockfence._is_outsider(oid, oid) IS
'whether a grant to a role gives it what it has not anyhow';

-- Who can act as an owner without being a superuser, who can do anything anyhow.
CREATE FUNCTION lockfence._logins_as(owner oid)
RETURNS SETOF oid
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.oid FROM pg_roles r
	WHERE r.rolcanlogin AND NOT r.rolsuper
		AND pg_has_role(r.oid, owner,
			CASE WHEN current_setting('server_version_num')::integer < 160000 THEN 'MEMBER' ELSE 'USAGE, SET' END)
$$;
COMMENT ON FUNCTION lockfence._logins_as(oid) IS
'the login roles, other than superusers, that are a role or can act as it';

CREATE FUNCTION lockfence._superuser()
RETURNS name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.rolname FROM pg_roles r
	WHERE r.oid = 10 OR r.rolsuper AND r.oid = (SELECT extowner FROM pg_extension WHERE extname = 'lockfence')
	ORDER BY r.oid = 10 LIMIT 1
$$;
COMMENT ON FUNCTION lockfence._superuser() IS
'the owner of the extension, or the first superuser if that role is none any more';

-- The memberships by which login roles come to act as a role.
CREATE FUNCTION lockfence._revoke_memberships(target regclass, owner oid)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(
		format('REVOKE %I FROM %I%s;', pg_get_userbyid(owner), pg_get_userbyid(m.member),
			CASE WHEN current_setting('server_version_num')::integer >= 160000
				THEN format(' GRANTED BY %I', pg_get_userbyid(m.grantor)) END)
			|| CASE WHEN c.relnamespace = 'lockfence'::regnamespace THEN '' ELSE
				format(E'\nGRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I;', target, pg_get_userbyid(m.member)) END,
		E'\n' ORDER BY pg_get_userbyid(m.member), pg_get_userbyid(m.grantor))
	FROM pg_auth_members m JOIN pg_class c ON c.oid = target
	WHERE m.roleid = owner AND EXISTS (
		SELECT FROM lockfence._logins_as(owner) AS l (role) WHERE pg_has_role(l.role, m.member, 'MEMBER'))
$$;
COMMENT ON FUNCTION lockfence._revoke_memberships(regclass, oid) IS
'the statements that keep login roles from acting as an owner but leave them the rights to write; null if there is no membership';

CREATE FUNCTION lockfence._verify_owners(members lockfence._member[])
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT o.member, 'warning', 'owner_can_login',
		CASE WHEN o.owner IN (SELECT lockfence._logins_as(o.owner)) THEN
			format('%s is owned by login role "%s", which can take its guards off.',
				o.member, pg_get_userbyid(o.owner))
		ELSE
			format('%s is owned by "%s", which can take its guards off and as which can act: %s.', o.member,
				pg_get_userbyid(o.owner), (
					SELECT string_agg(format('"%s"', pg_get_userbyid(l.role)), ', ' ORDER BY pg_get_userbyid(l.role))
					FROM lockfence._logins_as(o.owner) AS l (role)))
		END,
		CASE WHEN o.owner NOT IN (SELECT lockfence._logins_as(o.owner)) THEN
			coalesce(lockfence._revoke_memberships(o.member, o.owner), o.change)
		ELSE o.change || CASE WHEN o.is_ours THEN '' ELSE
			format(E'\nGRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I;', o.member, pg_get_userbyid(o.owner)) END
		END
	FROM (
		SELECT c.oid::regclass, c.relowner, c.relnamespace = 'lockfence'::regnamespace,
			format('ALTER TABLE %s OWNER TO %I;', c.oid::regclass, lockfence._superuser())
		FROM pg_class c
		WHERE c.oid IN (SELECT m.member FROM unnest(members) m WHERE m.root IS NOT NULL)
			OR c.relnamespace = 'lockfence'::regnamespace AND c.relname IN ('mark', 'state', 'admin_log')
	) AS o (member, owner, is_ours, change)
	WHERE EXISTS (SELECT FROM lockfence._logins_as(o.owner))
	UNION ALL
	SELECT c.oid, 'warning', 'trigger_privilege',
		format('%s may create triggers on %s, which can change what the guard has checked.',
			lockfence._grantee(a.grantee), c.oid::regclass),
		format('REVOKE TRIGGER ON %s FROM %s;', c.oid::regclass, lockfence._grantee(a.grantee))
	FROM unnest(members) f JOIN pg_class c ON c.oid = f.member
		CROSS JOIN aclexplode(c.relacl) AS a
	WHERE a.privilege_type = 'TRIGGER' AND f.root IS NOT NULL AND lockfence._is_outsider(a.grantee, c.relowner)
$$;
COMMENT ON FUNCTION lockfence._verify_owners(lockfence._member[]) IS
'findings of verify(): who can take the guards off fenced tables, or get around them';

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

-- The database as a whole.

CREATE FUNCTION lockfence._own_class(class_name name)
RETURNS SETOF pg_class
LANGUAGE sql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT * FROM pg_class WHERE relnamespace = 'lockfence'::regnamespace AND relname = class_name
$$;
COMMENT ON FUNCTION lockfence._own_class(name) IS
'the catalog row of a relation of the extension, if it exists';

CREATE FUNCTION lockfence._verify_mark_storage()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'warning', 'mark_missing',
		format('lockfence.%s does not exist: every write to a fenced table is refused.', n.name),
		'-- Drop and create the extension, attach the tables again and raise the marks, or restore a backup.'
	FROM (VALUES ('mark'), ('state'), ('admin_log')) AS n (name)
	WHERE NOT EXISTS (SELECT FROM lockfence._own_class(n.name))
	UNION ALL
	SELECT c.oid, 'error', 'mark_unlogged',
		format('%s is not logged: a crash empties it, and stale tokens pass.', c.oid::regclass),
		format('ALTER TABLE %s SET LOGGED;', c.oid::regclass)
	FROM (VALUES ('mark'), ('state')) AS n (name) CROSS JOIN LATERAL lockfence._own_class(n.name) c
	WHERE c.relpersistence <> 'p'
	UNION ALL
	SELECT c.oid, 'warning', 'mark_row_security',
		format('%s is under row-level security, which can hide rows from dumps and administration.', c.oid::regclass),
		format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;', c.oid::regclass)
	FROM (VALUES ('mark'), ('state'), ('admin_log')) AS n (name) CROSS JOIN LATERAL lockfence._own_class(n.name) c
	WHERE c.relrowsecurity OR c.relforcerowsecurity
	UNION ALL
	SELECT c.oid, 'error', 'mark_columns',
		format('%s does not have the columns that the extension made: what the fence reads there is undefined.',
			c.oid::regclass),
		format('-- Restore the database, or drop and create the extension: it had (%s).', n.columns)
	FROM (VALUES
		('mark', 3, 'token lockfence.fence_token, advanced_at timestamp with time zone, resource text'),
		('state', 2, 'name text, value bigint')) AS n (name, number, columns)
		CROSS JOIN LATERAL lockfence._own_class(n.name) c
	WHERE n.columns IS DISTINCT FROM (
		SELECT string_agg(format('%s %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = c.oid AND attnum BETWEEN 1 AND n.number)
	UNION ALL
	SELECT c.oid, 'warning', 'mark_columns',
		format('%s has a column "%s" that the fence does not know and leaves null.', c.oid::regclass, a.attname),
		format('ALTER TABLE %s DROP COLUMN %I;', c.oid::regclass, a.attname)
	FROM (VALUES ('mark', 3), ('state', 2)) AS n (name, number)
		CROSS JOIN LATERAL lockfence._own_class(n.name) c JOIN pg_attribute a ON a.attrelid = c.oid
	WHERE a.attnum > n.number AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION lockfence._verify_mark_storage() IS
'findings of verify(): tables of marks that are not as the extension made them';

-- What the index is like decides what mends it.
CREATE FUNCTION lockfence._verify_mark_key()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid, 'error', 'mark_key', format('lockfence.mark_pkey %s: a mark could be missed, and stale tokens pass.',
		p.problem),
		CASE
			WHEN p.remedy <> '' THEN p.remedy
			ELSE concat(
				(SELECT format(E'ALTER TABLE lockfence.mark DROP CONSTRAINT %I;\n', conname)
					FROM pg_constraint WHERE conrelid = c.oid AND contype = 'p'),
				CASE WHEN i.indexrelid IS NOT NULL AND NOT i.indisprimary
					THEN E'DROP INDEX IF EXISTS lockfence.mark_pkey;\n' END,
				'ALTER TABLE lockfence.mark ADD CONSTRAINT mark_pkey PRIMARY KEY (resource);')
		END
	FROM lockfence._own_class('mark') c
		LEFT JOIN lockfence._own_class('mark_pkey') k ON true
		LEFT JOIN pg_index i ON i.indexrelid = k.oid AND i.indrelid = c.oid
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'resource' AND NOT a.attisdropped
		CROSS JOIN LATERAL (
			SELECT CASE
				WHEN i.indexrelid IS NULL THEN 'is not an index of lockfence.mark'
				WHEN a.attcollation <> '"C"'::regcollation OR i.indcollation[0] <> '"C"'::regcollation
					THEN 'is not sorted by COLLATE "C"'
				WHEN i.indkey::text <> a.attnum::text OR NOT i.indisunique OR i.indpred IS NOT NULL OR NOT i.indisprimary
					THEN 'is not the primary key on resource'
				WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN 'is not valid'
			END, CASE
				WHEN a.attcollation <> '"C"'::regcollation
					THEN 'ALTER TABLE lockfence.mark ALTER COLUMN resource TYPE text COLLATE "C";'
				WHEN i.indisprimary AND NOT (i.indisvalid AND i.indisready AND i.indislive)
					THEN 'REINDEX INDEX lockfence.mark_pkey;'
				ELSE ''
			END
		) AS p (problem, remedy)
	WHERE p.problem IS NOT NULL
$$;
COMMENT ON FUNCTION lockfence._verify_mark_key() IS
'findings of verify(): the index by which marks are found';

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

CREATE FUNCTION lockfence._verify_mark_guards()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid, 'error', 'mark_guard',
		format('Trigger "%s" of %s %s', g.name, c.oid::regclass, CASE
			WHEN t.oid IS NULL THEN 'is missing'
			WHEN NOT a.is_as_made THEN 'is not as the extension made it'
			ELSE 'does not fire always' END)
			|| CASE g.name
				WHEN '~lockfence_state' THEN ': sessions do not notice a new epoch.'
				WHEN '~lockfence_merge' THEN ': a restore could lower the epoch or the floor.'
				ELSE ': a restore or a superuser''s DML could lower marks.' END,
		CASE WHEN t.oid IS NOT NULL AND NOT a.is_as_made
				THEN format(E'DROP TRIGGER %I ON %s;\n', g.name, c.oid::regclass) ELSE '' END
			|| CASE WHEN t.oid IS NULL OR NOT a.is_as_made
				THEN format(E'CREATE TRIGGER %I %s ON %s FOR EACH %s EXECUTE FUNCTION %s;\n',
					g.name, g.events, c.oid::regclass, g.level, g.function) ELSE '' END
			|| format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;', c.oid::regclass, g.name)
	FROM (VALUES
		('mark', '~lockfence_mark', 31, 'lockfence.guard_mark()'::regprocedure, 'BEFORE INSERT OR UPDATE OR DELETE', 'ROW'),
		('mark', '~lockfence_marks', 34, 'lockfence.guard_marks()', 'BEFORE TRUNCATE', 'STATEMENT'),
		('state', '~lockfence_merge', 7, 'lockfence.merge_state()', 'BEFORE INSERT', 'ROW'),
		('state', '~lockfence_state', 29, 'lockfence.state_changed()', 'AFTER INSERT OR UPDATE OR DELETE', 'ROW')
	) AS g (table_name, name, type, function, events, level)
		CROSS JOIN LATERAL lockfence._own_class(g.table_name) c
		LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = g.name
		CROSS JOIN LATERAL (
			SELECT t.tgtype = g.type AND t.tgfoid = g.function AND t.tgattr::text = '' AND t.tgqual IS NULL
		) AS a (is_as_made)
	WHERE t.oid IS NULL OR NOT a.is_as_made OR t.tgenabled <> 'A'
$$;
COMMENT ON FUNCTION lockfence._verify_mark_guards() IS
'findings of verify(): the triggers of the tables of marks';

CREATE FUNCTION lockfence._verify_mark_privileges()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT g.class, 'warning', 'mark_writable',
		format('%s has %s on %s, which the fence alone should write.',
			lockfence._grantee(g.grantee), string_agg(g.privilege, ', ' ORDER BY g.privilege), g.class),
		format('REVOKE %s ON %s FROM %s;', string_agg(g.privilege, ', ' ORDER BY g.privilege), g.class,
			lockfence._grantee(g.grantee))
	FROM (
		SELECT c.oid::regclass, c.relowner, a.grantee, a.privilege_type
		FROM pg_class c CROSS JOIN aclexplode(c.relacl) AS a
		WHERE c.relnamespace = 'lockfence'::regnamespace
		UNION
		SELECT c.oid::regclass, c.relowner, a.grantee, format('%s (%I)', a.privilege_type, t.attname)
		FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid CROSS JOIN aclexplode(t.attacl) AS a
		WHERE c.relnamespace = 'lockfence'::regnamespace
	) AS g (class, owner, grantee, privilege)
	WHERE split_part(g.privilege, ' ', 1) IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES')
		AND lockfence._is_outsider(g.grantee, g.owner)
	GROUP BY g.class, g.grantee
	UNION ALL
	SELECT NULL, 'warning', 'mark_writable',
		format('"%s" is a member of pg_write_all_data and can write to the tables of marks.',
			pg_get_userbyid(m.member)),
		format('REVOKE pg_write_all_data FROM %I%s;', pg_get_userbyid(m.member),
			CASE WHEN current_setting('server_version_num')::integer >= 160000
				THEN format(' GRANTED BY %I', pg_get_userbyid(m.grantor)) END)
	FROM pg_auth_members m JOIN pg_roles w ON w.oid = m.roleid AND w.rolname = 'pg_write_all_data'
	WHERE lockfence._is_outsider(m.member, 0)
$$;
COMMENT ON FUNCTION lockfence._verify_mark_privileges() IS
'findings of verify(): who can write marks by hand';

CREATE FUNCTION lockfence._verify_schema()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'warning', 'schema_owner',
		format('Schema lockfence is owned by "%s", who can drop the fence''s objects and plant others.',
			pg_get_userbyid(n.nspowner)),
		format('ALTER SCHEMA lockfence OWNER TO %I;', lockfence._superuser())
	FROM pg_namespace n
	WHERE n.nspname = 'lockfence' AND EXISTS (
		SELECT FROM pg_roles WHERE oid = n.nspowner AND NOT rolsuper)
	UNION ALL
	SELECT NULL, 'warning', 'schema_writable',
		format('%s may create objects in schema lockfence, where they can pass for the fence''s own.',
			lockfence._grantee(a.grantee)),
		format('REVOKE CREATE ON SCHEMA lockfence FROM %s;', lockfence._grantee(a.grantee))
	FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) AS a
	WHERE n.nspname = 'lockfence' AND a.privilege_type = 'CREATE' AND lockfence._is_outsider(a.grantee, n.nspowner)
	UNION ALL
	SELECT NULL, 'warning', 'schema_stranger',
		format('%s %s is in schema lockfence and belongs to no extension: calls meant for the fence can reach it.',
			s.kind, s.name),
		format('DROP %s %s;', upper(s.kind), s.name)
	FROM (
		SELECT p.tableoid, p.oid, 'routine', p.oid::regprocedure::text FROM pg_proc p
		WHERE p.pronamespace = 'lockfence'::regnamespace
		UNION ALL
		SELECT c.tableoid, c.oid, CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
			WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' ELSE 'table' END, c.oid::regclass::text
		FROM pg_class c
		WHERE c.relnamespace = 'lockfence'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
	) AS s (catalog, id, kind, name)
	WHERE NOT EXISTS (
		SELECT FROM pg_depend d
		WHERE d.classid = s.catalog AND d.objid = s.id AND d.objsubid = 0 AND d.deptype IN ('e', 'a', 'i'))
$$;
COMMENT ON FUNCTION lockfence._verify_schema() IS
'findings of verify(): who owns, and what is in, the extension''s schema';

CREATE FUNCTION lockfence._verify_functions()
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

CREATE FUNCTION lockfence._verify_token_type()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, v.severity, 'token_type', format('Domain lockfence.fence_token %s', v.problem), v.remedy
	FROM pg_type t CROSS JOIN LATERAL (
		SELECT 'error', 'has a default: every INSERT without a token presents it.',
			'ALTER DOMAIN lockfence.fence_token DROP DEFAULT;'
		WHERE t.typdefault IS NOT NULL
		UNION ALL
		SELECT 'warning', 'is NOT NULL: writes without a token can fail for the wrong reason.',
			'ALTER DOMAIN lockfence.fence_token DROP NOT NULL;'
		WHERE t.typnotnull
		UNION ALL
		SELECT 'warning', format('has constraint "%s": adding a token column rewrites the table.', conname),
			format('ALTER DOMAIN lockfence.fence_token DROP CONSTRAINT %I;', conname)
		FROM pg_constraint WHERE contypid = t.oid AND contype = 'c'
	) AS v (severity, problem, remedy)
	WHERE t.typnamespace = 'lockfence'::regnamespace AND t.typname = 'fence_token'
$$;
COMMENT ON FUNCTION lockfence._verify_token_type() IS
'findings of verify(): changes of the domain of tokens';

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
		('lockfence.bypass', 'bypass', 'error', 'no fence decides')
	) AS v (name, code, severity, problem) ON v.name = c.name
	WHERE CASE c.name WHEN 'session_replication_role' THEN c.value = 'replica'
		ELSE c.value !~ '^(of|off|f|fa|fal|fals|false|n|no|0)$' END
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
		format('ALTER %s RESET %s;', w.object, o.setting)
	FROM pg_db_role_setting s
		LEFT JOIN pg_database d ON d.oid = s.setdatabase
		CROSS JOIN LATERAL lockfence._switched_off(s.setconfig) o
		CROSS JOIN LATERAL (
			SELECT concat_ws(' ', 'for',
					CASE s.setrole WHEN 0 THEN 'every role' ELSE format('role "%s"', pg_get_userbyid(s.setrole)) END,
					'in database "' || d.datname || '"'),
				CASE
					WHEN s.setrole = 0 THEN coalesce('DATABASE ' || quote_ident(d.datname), 'ROLE ALL')
					WHEN d.oid IS NULL THEN format('ROLE %I', pg_get_userbyid(s.setrole))
					ELSE format('ROLE %I IN DATABASE %I', pg_get_userbyid(s.setrole), d.datname) END
		) AS w (place, object)
	WHERE s.setdatabase = 0 OR d.datname = current_database()
	UNION ALL
	SELECT NULL, o.severity, o.code || '_in_function',
		format('%s is set by %s: while it runs, %s.', o.setting, p.oid::regprocedure, o.problem),
		format('ALTER ROUTINE %s RESET %s;', p.oid::regprocedure, o.setting)
	FROM pg_proc p CROSS JOIN LATERAL lockfence._switched_off(p.proconfig) o
	WHERE p.proconfig IS NOT NULL
	UNION ALL
	SELECT NULL, 'error', 'bypass_is_on',
		'lockfence.bypass is on in this session: no fence decides.',
		CASE WHEN 'configuration file' = (SELECT source FROM pg_settings WHERE name = 'lockfence.bypass')
			THEN E'ALTER SYSTEM SET lockfence.bypass = off;\nSELECT pg_reload_conf();'
			ELSE 'SET lockfence.bypass = off;' END
	FROM lockfence._switched_off(ARRAY['lockfence.bypass=' || nullif(current_setting('lockfence.bypass', true), '')])
$$;
COMMENT ON FUNCTION lockfence._verify_settings() IS
'findings of verify(): settings in force that switch guards off';

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

CREATE FUNCTION lockfence._verify_statistics()
RETURNS SETOF lockfence._finding
LANGUAGE sql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NULL::regclass, 'info', 'statistics_unavailable',
		'There is no shared memory for statistics: refusals leave no trace but the server''s log.',
		E'-- Preload the library: add it to this setting, and restart the server.\nSHOW shared_preload_libraries;'
	FROM lockfence.stats_info() i
	WHERE NOT i.available
$$;
COMMENT ON FUNCTION lockfence._verify_statistics() IS
'findings of verify(): nothing is counted';

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

CREATE FUNCTION lockfence._verify_database()
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

-- Parents first, as what mends a parent can mend its partitions.  Compiling
-- queries that meet a few rows takes far longer than running them.
CREATE FUNCTION lockfence.verify(target regclass DEFAULT NULL)
RETURNS TABLE (target regclass, severity text, code text, problem text, remedy text)
LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
	SELECT v.* FROM lockfence._verify_tables(ARRAY(
		SELECT f.member
		FROM (
			SELECT verify.target WHERE verify.target IS NOT NULL
			UNION ALL
			SELECT t FROM lockfence._fenced_tables() AS t WHERE verify.target IS NULL
		) AS a (start) CROSS JOIN LATERAL lockfence._family(a.start) f
		GROUP BY f.member
		ORDER BY max(f.depth), f.member)) v
	UNION ALL
	SELECT v.* FROM lockfence._verify_database() v
$$;
COMMENT ON FUNCTION lockfence.verify(regclass) IS
'what is wrong with a table''s fence (null: with every fence), its partitions and children, and with the extension in this database; no rows: nothing. severity: error, a stale write can pass; warning, somebody could let one pass, or right writes fail; info, declared so. remedy is the SQL that mends it, parents first: run it, then verify() again';

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

-- ---------------------------------------------------------------- the drill

-- A holder that comes back late, played in one session.  A transaction's memo
-- would have it speak for the newer grant, so the mark is set once more in
-- between, which makes the transaction forget what it holds.

CREATE FUNCTION lockfence._literals(target regclass, columns jsonb)
RETURNS TABLE (name name, literal text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	place text;
BEGIN
	IF columns IS NULL OR jsonb_typeof(columns) <> 'object' OR columns = '{}' THEN
		RAISE EXCEPTION 'key and changes must be objects that name columns'
			USING ERRCODE = 'invalid_parameter_value', HINT = 'For example: ''{"batch_id": 9921}''.';
	END IF;
	FOR name IN SELECT k FROM jsonb_object_keys(columns) AS k ORDER BY k LOOP
		SELECT format_type(a.atttypid, a.atttypmod) INTO place FROM pg_attribute a
		WHERE a.attrelid = target AND a.attname = name AND a.attnum > 0 AND NOT a.attisdropped;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'column "%" of table "%" does not exist', name, target
				USING ERRCODE = 'undefined_column';
		END IF;
		EXECUTE format('SELECT quote_nullable(c.%1$I::text) || %2$L FROM jsonb_to_record($1) AS c (%1$I %3$s)',
			name, '::' || place, place) INTO literal USING columns;
		RETURN NEXT;
	END LOOP;
END
$$;
COMMENT ON FUNCTION lockfence._literals(regclass, jsonb) IS
'columns of a table and their values as literals';

CREATE FUNCTION lockfence._condition(target regclass, key jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(
		CASE WHEN key -> l.name::text = 'null' THEN format('t.%I IS NULL', l.name)
			ELSE format('t.%I = %s', l.name, l.literal) END, ' AND ')
	FROM lockfence._literals(target, key) l
$$;
COMMENT ON FUNCTION lockfence._condition(regclass, jsonb) IS
'the condition that rows of a table match a key';

CREATE FUNCTION lockfence._assignments(target regclass, changes jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(format('%I = %s', l.name, l.literal), ', ') FROM lockfence._literals(target, changes) l
$$;
COMMENT ON FUNCTION lockfence._assignments(regclass, jsonb) IS
'the assignments of an UPDATE';

-- All columns that an INSERT may name, without the token column.
CREATE FUNCTION lockfence._insertable(target regclass, token_column text)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
	WHERE attrelid = target AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
		AND attname IS DISTINCT FROM token_column
$$;
COMMENT ON FUNCTION lockfence._insertable(regclass, text) IS
'the columns that an INSERT names';

-- An upsert needs a unique index on the very columns of the key.
CREATE FUNCTION lockfence._is_unique(target regclass, key jsonb)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT EXISTS (
		SELECT FROM pg_index i
		WHERE i.indrelid = target AND i.indisunique AND i.indisvalid AND i.indimmediate
			AND i.indpred IS NULL AND i.indexprs IS NULL
			AND ARRAY(SELECT k FROM jsonb_object_keys(key) AS k ORDER BY k COLLATE "C") = ARRAY(
				SELECT a.attname::text COLLATE "C" FROM pg_attribute a
				WHERE a.attrelid = target AND a.attnum = ANY (i.indkey::smallint[])
					AND array_position(i.indkey::smallint[], a.attnum) < i.indnkeyatts
				ORDER BY 1))
$$;
COMMENT ON FUNCTION lockfence._is_unique(regclass, jsonb) IS
'whether a unique index has the columns of the key and no others';

-- What the drill needs to know of its table.
CREATE TYPE lockfence._stage AS (
	target regclass, leaf regclass, is_fenced boolean, is_row_fence boolean, takes_presented_only boolean,
	token_column text, resource text, token bigint);
COMMENT ON TYPE lockfence._stage IS
'the table of a drill: the partition that has the row, the fence, and a token higher than every one so far';

-- resource_of() does not answer for a fence that is damaged.
CREATE FUNCTION lockfence._filled_in(template text)
RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	expression text := quote_nullable(template);
	placeholder text;
BEGIN
	FOREACH placeholder IN ARRAY coalesce(lockfence.template_columns(template), '{}') LOOP
		expression := format('replace(%s, %L, t.%I::text)', expression, '{' || placeholder || '}', placeholder);
	END LOOP;
	RETURN format('replace(replace(%s, ''{{'', ''{''), ''}}'', ''}'')', expression);
END
$$;
COMMENT ON FUNCTION lockfence._filled_in(text) IS
'an expression for the resource of row t, as well as it can be told without the fence';

CREATE FUNCTION lockfence._set_stage(target regclass, condition text)
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

-- No ambient token, which would speak for the late holder as well; and not by
-- guarded_update() where there is another way, as it refuses a damaged fence.
CREATE FUNCTION lockfence._take_over(
	stage lockfence._stage, key jsonb, changes jsonb, token bigint, caller_path text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	statement text := CASE
		WHEN stage.is_row_fence AND stage.takes_presented_only
			THEN format('SELECT 1 WHERE lockfence.guarded_update(%L, %L, %L, %s) OPERATOR(pg_catalog.>) 0',
				stage.target, key, changes, token)
		ELSE format('UPDATE %s t SET %s%s WHERE %s', stage.target, lockfence._assignments(stage.target, changes),
			', ' || quote_ident(stage.token_column) || ' = ' || token, lockfence._condition(stage.target, key)) END;
	written bigint;
BEGIN
	IF stage.resource IS NOT NULL THEN
		PERFORM lockfence.present(stage.resource, token);
	END IF;
	PERFORM set_config('search_path', caller_path, true);
	EXECUTE statement;
	GET DIAGNOSTICS written = ROW_COUNT;
	PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
	IF written = 0 THEN
		RAISE EXCEPTION 'token % was accepted, but the drill could not write its row', token
			USING ERRCODE = 'no_data_found', HINT = 'A trigger or row-level security keeps the row from being written.';
	END IF;
	IF stage.resource IS NOT NULL THEN
		PERFORM lockfence._reset_mark(stage.resource, token);
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._take_over(lockfence._stage, jsonb, jsonb, bigint, text) IS
'a grant of the drill writes, and leaves its mark as if it had committed';

-- The ways in which the late holder comes; no statement: a way that is closed,
-- and why.  The order is the one in which they are tried.
CREATE FUNCTION lockfence._ways(stage lockfence._stage, key jsonb, changes jsonb, token bigint)
RETURNS TABLE (path text, presented bigint, statement text, reason text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	name text := stage.target;
	condition text := lockfence._condition(stage.target, key);
	assignments text := lockfence._assignments(stage.target, changes);
	update_row text := format('UPDATE %s t SET %s WHERE %s', name, assignments, condition);
	token_column text := quote_ident(coalesce(stage.token_column, ''));
	names text := lockfence._insertable(stage.target, stage.token_column);
	source text := format('SELECT %s FROM %s t WHERE %s', names, name, condition);
	insert_row text := format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE %s', name, names, source);
	keys text := (SELECT string_agg(quote_ident(k), ', ' ORDER BY k) FROM jsonb_object_keys(key) AS k);
	has_no_column text := CASE WHEN stage.token_column IS NULL THEN 'the table has no token column' END;
	is_no_rival text := CASE WHEN stage.is_row_fence
		THEN 'on a row fence a new row is a new resource' END;
	is_unfenced text := CASE WHEN NOT stage.is_fenced THEN 'the table is not fenced' END;
BEGIN
	RETURN QUERY
	SELECT w.path, w.presented, CASE WHEN w.reason IS NULL THEN w.statement END, w.reason
	FROM (VALUES
		(1, 'present', NULL, format('SELECT lockfence.present(%L, %s)', stage.resource, token),
			CASE WHEN stage.resource IS NULL THEN 'the resource has no name' END),
		(2, 'UPDATE', token, update_row, NULL),
		(3, 'UPDATE with the token column', NULL,
			format('UPDATE %s t SET %s, %s = %s WHERE %s', name, assignments, token_column, token, condition),
			has_no_column),
		(4, 'UPDATE without a token', NULL, update_row, NULL),
		(5, 'UPDATE of the partition', token,
			format('UPDATE %s t SET %s WHERE %s', stage.leaf, assignments, condition),
			CASE WHEN stage.leaf = stage.target THEN 'the row is in the table itself' END),
		(6, 'UPDATE as replica', token, update_row,
			CASE WHEN NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
				THEN 'it takes a superuser' END),
		(7, 'DELETE', token, format('DELETE FROM %s t WHERE %s', name, condition), NULL),
		(8, 'DELETE without a token', NULL, format('DELETE FROM %s t WHERE %s', name, condition), NULL),
		(9, 'INSERT', token, insert_row, is_no_rival),
		(10, 'INSERT with the token column', NULL,
			format('INSERT INTO %1$s (%2$s, %3$s) OVERRIDING SYSTEM VALUE SELECT %2$s, %4$s FROM %1$s t WHERE %5$s',
				name, names, token_column, token, condition),
			coalesce(has_no_column, is_no_rival)),
		(11, 'INSERT without a token', NULL, insert_row, is_no_rival),
		(12, 'upsert', token, format('%s ON CONFLICT (%s) DO UPDATE SET %s', insert_row, keys, assignments),
			CASE WHEN NOT lockfence._is_unique(stage.target, key) THEN 'the key is no unique index of the table' END),
		(13, 'MERGE', token,
			format('MERGE INTO %s t USING (VALUES (1)) AS one (n) ON %s WHEN MATCHED THEN UPDATE SET %s',
				name, condition, assignments),
			CASE WHEN current_setting('server_version_num')::integer < 150000 THEN 'it exists from PostgreSQL 15' END),
		(14, 'guarded_update', NULL,
			format('SELECT lockfence.guarded_update(%L, %L, %L, %s)', stage.target, key, changes, token), is_unfenced),
		(15, 'guarded_delete', NULL,
			format('SELECT lockfence.guarded_delete(%L, %L, %s)', stage.target, key, token), is_unfenced),
		(16, 'COPY', NULL, NULL, 'it takes a client: scripts/drill')
	) AS w (place, path, presented, statement, reason)
	ORDER BY w.place;
END
$$;
COMMENT ON FUNCTION lockfence._ways(lockfence._stage, jsonb, jsonb, bigint) IS
'the statements that the late holder of a drill tries';

-- The table's own triggers run under the caller's search path.
CREATE FUNCTION lockfence._try(
	path text, presented bigint, statement text, caller_path text, OUT verdict text, OUT code text, OUT message text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	written bigint;
BEGIN
	IF path = 'UPDATE as replica' THEN
		PERFORM set_config('session_replication_role', 'replica', true);
	END IF;
	IF presented IS NOT NULL THEN
		PERFORM lockfence.present(presented);
	END IF;
	PERFORM set_config('search_path', caller_path, true);
	EXECUTE statement;
	GET DIAGNOSTICS written = ROW_COUNT;
	RAISE EXCEPTION USING ERRCODE = 'LFEND';
EXCEPTION
	WHEN SQLSTATE 'LFEND' THEN
		verdict := CASE WHEN written = 0 THEN 'ignored' ELSE 'accepted' END;
	WHEN OTHERS THEN
		verdict := CASE WHEN SQLSTATE IN ('LF001', 'LF002') THEN 'refused' ELSE 'error' END;
		code := SQLSTATE;
		message := SQLERRM;
END
$$;
COMMENT ON FUNCTION lockfence._try(text, bigint, text, text) IS
'what comes of a statement of the late holder; it is rolled back';

CREATE TYPE lockfence._outcome AS (path text, verdict text, code text, message text, statement text);
COMMENT ON TYPE lockfence._outcome IS
'what came of a statement of drill()';

-- Variables outlive the subtransaction that everything else happens in, and which
-- ends by an exception in any case.
CREATE FUNCTION lockfence.drill(
	target regclass, key jsonb, changes jsonb,
	caller_path text DEFAULT pg_catalog.current_setting('search_path'))
RETURNS TABLE (path text, verdict text, code text, message text, statement text)
LANGUAGE plpgsql ROWS 16
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	condition text := lockfence._condition(target, key);
	stage lockfence._stage;
	way record;
	found lockfence._outcome;
	outcomes lockfence._outcome[] := '{}';
BEGIN
	IF EXISTS (SELECT FROM lockfence.presented()) THEN
		RAISE EXCEPTION 'this transaction has presented a token'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'Run the drill in a transaction of its own.';
	END IF;
	BEGIN
		IF current_setting('lockfence.preempt', true) <> 'off' THEN
			PERFORM set_config('lockfence.preempt', 'off', true);
		END IF;
		stage := lockfence._set_stage(target, condition);
		PERFORM lockfence._assignments(target, changes);
		PERFORM lockfence._take_over(stage, key, changes, stage.token, caller_path);
		PERFORM lockfence._take_over(stage, key, changes, stage.token + 1, caller_path);
		FOR way IN SELECT * FROM lockfence._ways(stage, key, changes, stage.token) LOOP
			found := (way.path, 'skipped', NULL, way.reason, NULL);
			IF way.statement IS NOT NULL THEN
				SELECT way.path, t.verdict, t.code, t.message, way.statement INTO found
				FROM lockfence._try(way.path, way.presented, way.statement, caller_path) t;
			END IF;
			outcomes := outcomes || found;
		END LOOP;
		RAISE EXCEPTION USING ERRCODE = 'LFEND';
	EXCEPTION WHEN SQLSTATE 'LFEND' THEN
		NULL;
	END;
	RETURN QUERY SELECT o.* FROM unnest(outcomes) o;
END
$$;
COMMENT ON FUNCTION lockfence.drill(regclass, jsonb, jsonb, text) IS
'plays a late holder on a row of a table: a grant writes, a newer one takes over and writes, and the first comes back by every path there is. verdict: refused (as it should be), accepted (a stale write passed), ignored (no row, and no error), error (something else than the fence stopped it), skipped (message says why). Everything is rolled back. Waits for transactions that hold the row or its resource. For tests; takes a superuser. Example: SELECT * FROM lockfence.drill(''batch'', ''{"batch_id": 9921}'', ''{"state": "settled"}'')';

REVOKE ALL ON FUNCTION lockfence.drill(regclass, jsonb, jsonb, text) FROM PUBLIC;
