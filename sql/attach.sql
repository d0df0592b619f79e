CREATE FUNCTION lockfence._refuse_target(target regclass, reason text, hint text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE EXCEPTION 'cannot fence "%"', lockfence._visible(target::text)
		USING ERRCODE = 'LF009', DETAIL = lockfence._visible(reason), HINT = hint;
END
$$;
COMMENT ON FUNCTION lockfence._refuse_target(regclass, text, text) IS
'raises LF009 with the reason why a table cannot be fenced';

CREATE FUNCTION lockfence._impostors(tables regclass[])
RETURNS TABLE (member regclass, name name, function regproc)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT tgrelid::regclass, tgname, tgfoid::regproc FROM pg_trigger
	WHERE tgrelid = ANY (tables) AND NOT lockfence._is_guard(tgfoid)
		AND tgname IN ('~lockfence_row', '~lockfence_statement', '~lockfence_truncate')
$$;
COMMENT ON FUNCTION lockfence._impostors(regclass[]) IS
'triggers that have the name of a guard and another function';

-- Every table of the family has to pass this.
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
	IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = member AND lockfence._is_guard(tgfoid)) THEN
		RAISE EXCEPTION 'table "%" is already fenced', lockfence._visible(member::text)
			USING ERRCODE = 'duplicate_object',
				HINT = 'Use lockfence.detach() first to change a fence.';
	END IF;
	IF EXISTS (SELECT FROM lockfence._impostors(ARRAY[member])) THEN
		PERFORM lockfence._refuse_target(member,
			format('Trigger "%s" of table "%s" has the name of a guard, but is not one.',
				(SELECT min(name) FROM lockfence._impostors(ARRAY[member])), member),
			'Rename the trigger, or drop it.');
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_member(regclass) IS
'raises LF009 with the reason if a table, or a partition or child of one, cannot be fenced';

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
			RAISE EXCEPTION 'column "%" of table "%" does not exist', lockfence._visible(placeholder), lockfence._visible(target::text)
				USING ERRCODE = 'undefined_column',
					DETAIL = format('The resource "%s" names it as a placeholder.', lockfence._visible(resource)),
					HINT = 'A brace that belongs to the name itself is written twice.';
		END IF;
		IF attribute.attgenerated <> '' THEN
			PERFORM lockfence._refuse_target(target,
				format('Placeholder "%s" is a generated column, which is not yet computed when the fence decides.',
					placeholder),
				'Name the columns that it is computed from.');
		END IF;
		IF EXISTS (SELECT FROM pg_type WHERE oid = attribute.atttypid AND typnamespace = 'pg_catalog'::regnamespace
			AND typcategory = 'N' AND typname LIKE 'reg%') THEN
			RAISE WARNING 'column "%" names resources by the name of an object', lockfence._visible(placeholder)
				USING DETAIL = 'If the object is renamed, the resource has another name, which has no mark.',
					HINT = 'Name a column of type text or oid instead.';
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

CREATE FUNCTION lockfence._check_column_type(member regclass, token_column name, types regtype[], hint text)
RETURNS pg_attribute
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	attribute pg_attribute;
BEGIN
	SELECT * INTO attribute FROM pg_attribute
	WHERE attrelid = member AND attname = token_column AND NOT attisdropped;
	IF attribute.attnum < 0 OR attribute.atttypid <> ALL (types) THEN
		PERFORM lockfence._refuse_target(member,
			format('Column "%s" is of type %s.', token_column,
				format_type(attribute.atttypid, attribute.atttypmod)), hint);
	END IF;
	IF attribute.attgenerated <> '' THEN
		PERFORM lockfence._refuse_target(member,
			format('Column "%s" is a generated column, which is not yet computed when the fence decides.',
				token_column),
			'Name another token column.');
	END IF;
	RETURN attribute;
END
$$;
COMMENT ON FUNCTION lockfence._check_column_type(regclass, name, regtype[], text) IS
'raises LF009 with the reason if a table''s column is not of one of the types, or is generated; returns its catalog row';

-- Checks the column of every table of the family: a partition or child may have
-- a default of its own.
CREATE FUNCTION lockfence._check_token_column(member regclass, token_column name)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	attribute pg_attribute := lockfence._check_column_type(member, token_column, '{bigint,lockfence.fence_token}',
		'A token column is of type lockfence.fence_token or bigint; name another one.');
BEGIN
	IF attribute.attidentity <> '' OR attribute.atthasdef THEN
		PERFORM lockfence._refuse_target(member,
			format('Column "%s" has a default, which would present a token that was granted to no holder.', token_column),
			'Drop the default, or name another token column.');
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_token_column(regclass, name) IS
'raises LF009 with the reason if a table''s column cannot hold its tokens';

-- 0 is no token: a column of the application's may have it as default.
CREATE FUNCTION lockfence._is_zero_default(member oid, attnum smallint)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT EXISTS (
		SELECT FROM pg_attrdef d
		WHERE d.adrelid = member AND d.adnum = attnum AND pg_get_expr(d.adbin, d.adrelid) ~ '^\(?''?0''?\)?(::[a-z]+)?$')
$$;
COMMENT ON FUNCTION lockfence._is_zero_default(oid, smallint) IS
'whether the default of a column is the number 0';

CREATE FUNCTION lockfence._check_read_column(member regclass, token_column name)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	attribute pg_attribute := lockfence._check_column_type(member, token_column, '{smallint,integer,bigint,lockfence.fence_token}',
		'A token column that is only read is of type smallint, integer or bigint; name another one.');
BEGIN
	IF attribute.attidentity <> '' OR (attribute.atthasdef AND NOT lockfence._is_zero_default(member, attribute.attnum)) THEN
		PERFORM lockfence._refuse_target(member,
			format('Column "%s" has a default other than 0, which would present a token that was granted to no holder.', token_column),
			'Set the default to 0, or name another token column.');
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_read_column(regclass, name) IS
'raises LF009 with the reason if a table''s column cannot be read as its token';

CREATE FUNCTION lockfence._has_column(target regclass, column_name name)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = target AND attname = column_name AND NOT attisdropped)
$$;
COMMENT ON FUNCTION lockfence._has_column(regclass, name) IS
'whether a table has a column';

-- Adding the column rewrites nothing.
CREATE FUNCTION lockfence._provide_token_column(target regclass, token_column name)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF NOT lockfence._has_column(target, token_column) THEN
		EXECUTE format('ALTER TABLE %s ADD COLUMN %I lockfence.fence_token', target, token_column);
	END IF;
	PERFORM lockfence._check_token_column(member, token_column) FROM lockfence._family(target);
END
$$;
COMMENT ON FUNCTION lockfence._provide_token_column(regclass, name) IS
'adds a token column to a table if it is missing; raises LF009 if the column that is there cannot be one';

CREATE FUNCTION lockfence._check_validator(validator regprocedure)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF NOT lockfence._is_validator(validator) THEN
		RAISE EXCEPTION 'function % cannot be a validator', lockfence._visible(validator::text)
			USING ERRCODE = 'invalid_function_definition',
				HINT = 'A validator is a function of (resource text, token lockfence.fence_token) that returns boolean.';
	END IF;
	IF NOT has_function_privilege(validator, 'EXECUTE') THEN
		RAISE EXCEPTION 'permission denied for function %', lockfence._visible(validator::text)
			USING ERRCODE = 'insufficient_privilege';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_validator(regprocedure) IS
'raises an error if a function cannot be a fence''s validator';

-- Qualified, so that it is found again whatever the search path.
CREATE FUNCTION lockfence._signature(validator regprocedure)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('%I.%I(pg_catalog.text,%I.%I)', n.nspname, p.proname, tn.nspname, t.typname)
	FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		JOIN pg_type t ON t.oid = p.proargtypes[1] JOIN pg_namespace tn ON tn.oid = t.typnamespace
	WHERE p.oid = validator
$$;
COMMENT ON FUNCTION lockfence._signature(regprocedure) IS
'a validator as a fence names it';

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
	ELSIF NOT EXISTS (
		SELECT FROM pg_trigger WHERE tgrelid = member AND tgfoid = 'lockfence.guard_row()'::regprocedure) THEN
		EXECUTE format('CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON %s'
			' FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row(%s)', member, arguments);
	END IF;
	EXECUTE format('CREATE TRIGGER "~lockfence_truncate" BEFORE TRUNCATE ON %s'
		' FOR EACH STATEMENT EXECUTE FUNCTION lockfence.guard_truncate(%s)', member, arguments);
	FOR guard IN
		SELECT tgname FROM pg_trigger
		WHERE tgrelid = member AND lockfence._is_guard(tgfoid) AND tgenabled <> 'A'
	LOOP
		EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %I', member, guard);
	END LOOP;
END
$$;
COMMENT ON FUNCTION lockfence._create_guards(regclass, boolean, text) IS
'creates the guards of one table, which fire always';

CREATE FUNCTION lockfence._warn_of_issuer(target regclass)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF lockfence._is_issuer(target) AND EXISTS (
		SELECT FROM pg_trigger t WHERE t.tgrelid = target AND lockfence._is_guard(t.tgfoid)) THEN
		RAISE WARNING 'table "%" is fenced, and is a lock table that issues tokens', lockfence._visible(target::text)
			USING DETAIL = 'The fence decides on each attempt to take the lock, also on one that then fails, and so puts holders out that are alive.',
				HINT = 'Fence the tables that the lock protects, and take the fence off the lock table by lockfence.detach().';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._warn_of_issuer(regclass) IS
'warns if a table is both fenced and a lock table that issues tokens';

-- PostgreSQL creates the row guard of a partitioned table on each new partition, as the role that makes that.
CREATE FUNCTION lockfence._owners_without_guard(tables regclass[])
RETURNS TABLE (member regclass, owner name)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid::regclass, pg_get_userbyid(c.relowner)
	FROM pg_class c
	WHERE c.oid = ANY (tables) AND c.relkind = 'p'
		AND EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgfoid = 'lockfence.guard_row()'::regprocedure)
		AND NOT has_function_privilege(c.relowner, 'lockfence.guard_row()', 'EXECUTE')
$$;
COMMENT ON FUNCTION lockfence._owners_without_guard(regclass[]) IS
'the fenced partitioned tables whose owner can make no partition of them, for lack of EXECUTE on the guard';

CREATE FUNCTION lockfence._warn_of_owner(target regclass)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	found_owner record;
BEGIN
	FOR found_owner IN
		SELECT o.owner, min(o.member::text COLLATE "C") AS member
		FROM lockfence._owners_without_guard(ARRAY(SELECT f.member FROM lockfence._family(target) f)) o
		GROUP BY o.owner ORDER BY o.owner COLLATE "C"
	LOOP
		RAISE WARNING 'owner "%" of "%" can no longer make partitions of it',
			lockfence._visible(found_owner.owner::text), lockfence._visible(found_owner.member)
			USING DETAIL = 'A new partition gets the guard of the table, and the owner may not execute lockfence.guard_row().',
				HINT = 'Have a superuser make the partitions; or grant EXECUTE on lockfence.guard_row() to the owner, if it may raise the marks of all resources.';
	END LOOP;
END
$$;
COMMENT ON FUNCTION lockfence._warn_of_owner(regclass) IS
'warns if the owner of a fenced partitioned table can make no partition of it';

CREATE FUNCTION lockfence._attach(
	target regclass,
	resource text,
	token_column name,
	accept text,
	enforcement text,
	missing text,
	repeat text,
	validator regprocedure)
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
	SELECT string_agg(quote_literal(a.argument), ', ' ORDER BY a.place) INTO arguments
	FROM unnest(lockfence._arguments(jsonb_build_object(
		'resource', resource, 'token_column', column_of_tokens, 'accept', accept, 'enforcement', enforcement,
		'missing', missing, 'repeat', repeat, 'validator', lockfence._signature(validator),
		'advisory_since', CASE enforcement WHEN 'advisory' THEN
			to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END))) WITH ORDINALITY AS a (argument, place);
	IF repeat = 'reject' AND lower(missing) <> 'reject' THEN
		RAISE EXCEPTION 'a single-use fence cannot let writes without a token pass'
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Use missing => ''reject'' with repeat => ''reject''.';
	END IF;

	IF accept = 'read' AND (resource IS NULL OR token_column IS NULL) THEN
		RAISE EXCEPTION 'a token column can be read only where a resource is named'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = CASE WHEN resource IS NULL THEN 'A row fence keeps its marks in the column, so it has to write there.'
					ELSE 'No column is named.' END,
				HINT = 'Name a resource, and the column by token_column.';
	END IF;

	PERFORM lockfence._check_member(member) FROM lockfence._family(target);
	EXECUTE format('LOCK TABLE %s IN %s MODE', target,
		CASE WHEN column_of_tokens IS NULL OR accept = 'read' THEN 'SHARE ROW EXCLUSIVE' ELSE 'ACCESS EXCLUSIVE' END);
	PERFORM lockfence._check_member(member) FROM lockfence._family(target);

	IF resource IS NULL THEN
		IF (SELECT relpersistence FROM pg_class WHERE oid = target) = 'u' THEN
			PERFORM lockfence._refuse_target(target,
				'The marks of a row fence are in its rows, and an unlogged table is empty after a crash.',
				'Make the table logged, or name a resource.');
		END IF;
		IF validator IS NOT NULL THEN
			RAISE EXCEPTION 'a row fence cannot have a validator'
				USING ERRCODE = 'invalid_parameter_value',
					DETAIL = 'A validator is called with the name of a resource, and a row has none.',
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
	IF accept = 'read' AND NOT lockfence._has_column(target, column_of_tokens) THEN
		RAISE EXCEPTION 'column "%" of table "%" does not exist', lockfence._visible(column_of_tokens::text), lockfence._visible(target::text)
			USING ERRCODE = 'undefined_column', HINT = 'A column that is only read is the application''s own: attach() does not add it.';
	ELSIF accept = 'read' THEN
		PERFORM lockfence._check_read_column(member, column_of_tokens) FROM lockfence._family(target);
	ELSIF column_of_tokens IS NOT NULL THEN
		PERFORM lockfence._provide_token_column(target, column_of_tokens);
	END IF;

	PERFORM lockfence._create_guards(member, by_statement, arguments) FROM lockfence._family(target);
	PERFORM lockfence._forget_fence(member), lockfence._record_fence(member) FROM lockfence._family(target);
	PERFORM lockfence._warn_of_issuer(target), lockfence._warn_of_owner(target);
END
$$;
COMMENT ON FUNCTION lockfence._attach(regclass, text, name, text, text, text, text, regprocedure) IS
'attach(), which enters here, so that its errors have no context within it';

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
AS 'MODULE_PATHNAME', 'lockfence_enter'
LANGUAGE c;
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
	forgotten integer;
BEGIN
	IF EXISTS (SELECT FROM pg_trigger
		WHERE tgrelid = target AND lockfence._is_guard(tgfoid) AND tgparentid <> 0) THEN
		RAISE EXCEPTION 'table "%" is fenced as a partition', lockfence._visible(target::text)
			USING ERRCODE = 'wrong_object_type',
				HINT = format('Use lockfence.detach(%s).', lockfence._literal(pg_partition_root(target)::text));
	END IF;
	FOR guard IN
		SELECT t.tgrelid::regclass AS member, t.tgname
		FROM lockfence._family(target) f JOIN pg_trigger t ON t.tgrelid = f.member
		WHERE lockfence._is_guard(t.tgfoid) AND t.tgparentid = 0
		ORDER BY f.depth, f.member, t.tgname
	LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', guard.tgname, guard.member);
		dropped := dropped + 1;
	END LOOP;
	SELECT count(*) INTO forgotten FROM lockfence._family(target) WHERE lockfence._forget_fence(member);
	IF dropped + forgotten = 0 THEN
		RAISE EXCEPTION 'table "%" is not fenced', lockfence._visible(target::text) USING ERRCODE = 'undefined_object';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence.detach(regclass) IS
'removes the fence from a table, its partitions and children, and takes them off the record of what is fenced; the token column and the marks stay';

-- The end of reconcile().  As the owner: the administrator vouches for the marks,
-- and not the table's owner.  On a standby, where all is on record, this
-- writes nothing.
CREATE FUNCTION lockfence._reconciled(target regclass, raised bigint)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	recorded bigint;
BEGIN
	SELECT count(*) INTO recorded FROM lockfence._family(target) WHERE lockfence._record_fence(member);
	IF raised + recorded > 0 THEN
		PERFORM lockfence._log('reconcile', NULL, NULL, NULL,
			format('%s: %s marks raised to the tokens in its rows, %s tables put on record',
				lockfence._visible(target::text), raised, recorded));
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._reconciled(regclass, bigint) IS
'puts a table whose marks are there, its partitions and children on record, and logs the call of reconcile()';

CREATE FUNCTION lockfence._rows_above_marks(target regclass, template text, token_column text, sample integer)
RETURNS TABLE (resource text, token bigint, has_mark boolean)
LANGUAGE c VOLATILE ROWS 10
AS 'MODULE_PATHNAME', 'lockfence_rows_above_marks';
COMMENT ON FUNCTION lockfence._rows_above_marks(regclass, text, text, integer) IS
'the tokens in a table''s rows that are above the marks of their resources, or above the floor where there is none: of the table with its partitions and children or, as a sample, of so many rows of the table alone. Takes SELECT on the table, and runs nothing that its owner has defined; an error where row-level security hides rows';

CREATE FUNCTION lockfence.reconcile(target regclass)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	fence record;
	found_mark record;
	before bigint;
	raised bigint := 0;
BEGIN
	SELECT f.kind, f.resource, f.token_column INTO fence
	FROM lockfence.fences f WHERE f.target = reconcile.target ORDER BY f.kind LIMIT 1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'table "%" is not fenced', lockfence._visible(target::text)
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'Fence it by lockfence.attach().';
	ELSIF fence.kind IS NULL THEN
		RAISE EXCEPTION 'the guards of table "%" declare no fence', lockfence._visible(target::text)
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'See lockfence.verify().';
	END IF;
	IF fence.resource IS NOT NULL AND fence.token_column IS NOT NULL THEN
		FOR found_mark IN
			SELECT r.resource, max(r.token) AS token
			FROM lockfence._rows_above_marks(target, fence.resource, fence.token_column, NULL) r
			GROUP BY r.resource ORDER BY r.resource COLLATE "C"
		LOOP
			before := lockfence._raise_mark(found_mark.resource, found_mark.token);
			IF before IS NULL OR before < found_mark.token THEN
				raised := raised + 1;
			END IF;
		END LOOP;
	END IF;
	PERFORM lockfence._reconciled(target, raised);
	RETURN raised;
END
$$;
COMMENT ON FUNCTION lockfence.reconcile(regclass) IS
'raises the marks of a named fence to the highest tokens stored in its rows, and puts the table, its partitions and children on record, which unseals them (LF005), after ATTACH PARTITION or a restore without the marks; returns how many marks it raised. Reads the whole table, and runs nothing that its owner has defined; an error where row-level security hides rows from the caller. A fence without a token column has no tokens in its rows: see to its marks first. Logged';
