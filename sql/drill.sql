-- ---------------------------------------------------------------- the drill

-- A stale holder, played in one session.  The transaction's memo would let it pass
-- under the newer grant, so the mark is set once more in between, which makes the
-- transaction forget what it holds.

-- The tables belong to other roles, so what their owners have defined runs as the owners,
-- and no value is read before.

CREATE FUNCTION lockfence._as_owner(
	target regclass, statement text, path text, OUT written bigint, OUT answer text[])
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'lockfence_as_owner';
COMMENT ON FUNCTION lockfence._as_owner(regclass, text, text) IS
'executes a statement with the rights of a table''s owner, which the caller must have too, and under a search path; returns how many rows it was about, and the first as texts';

CREATE FUNCTION lockfence._guarded_as_owner(
	target regclass, key jsonb, changes jsonb, token lockfence.fence_token, path text)
RETURNS bigint
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_guarded_as_owner';
COMMENT ON FUNCTION lockfence._guarded_as_owner(regclass, jsonb, jsonb, lockfence.fence_token, text) IS
'guarded_update() or, with no changes, guarded_delete() with the rights of a table''s owner, which the caller must have too, and under a search path';

CREATE FUNCTION lockfence._given_texts(target regclass, columns jsonb, is_key boolean)
RETURNS TABLE (name name, input text, equality text)
LANGUAGE c STABLE STRICT ROWS 10
AS 'MODULE_PATHNAME', 'lockfence_given_texts';
COMMENT ON FUNCTION lockfence._given_texts(regclass, jsonb, boolean) IS
'columns of a table with the texts that their input functions are to read, and for a key with the operators that compare them';

CREATE FUNCTION lockfence._literals(target regclass, columns jsonb, is_key boolean)
RETURNS TABLE (name name, literal text, equality text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF columns IS NULL OR jsonb_typeof(columns) <> 'object' OR columns = '{}' THEN
		RAISE EXCEPTION 'key and changes must be objects that name columns'
			USING ERRCODE = 'invalid_parameter_value', HINT = 'For example: ''{"batch_id": 9921}''.';
	END IF;
	RETURN QUERY
	SELECT g.name, CASE WHEN g.input IS NULL AND is_key THEN NULL
			ELSE quote_nullable(g.input) || '::' || format_type(a.atttypid, a.atttypmod) END, g.equality
	FROM lockfence._given_texts(target, columns, is_key) g
		JOIN pg_attribute a ON a.attrelid = target AND a.attname = g.name
	ORDER BY g.name;
END
$$;
COMMENT ON FUNCTION lockfence._literals(regclass, jsonb, boolean) IS
'columns of a table and their values as literals (null: of a key, a null), and for a key the operators that compare them';

CREATE FUNCTION lockfence._condition(target regclass, key jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(
		coalesce(format('t.%I %s ', l.name, l.equality) || l.literal, format('t.%I IS NULL', l.name)), ' AND ')
	FROM lockfence._literals(target, key, true) l
$$;
COMMENT ON FUNCTION lockfence._condition(regclass, jsonb) IS
'the condition that rows of a table match a key';

CREATE FUNCTION lockfence._assignments(target regclass, changes jsonb)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(format('%I = %s', l.name, l.literal), ', ') FROM lockfence._literals(target, changes, false) l
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

-- resource_of() does not answer for a fence that is broken.
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
		expression := format('pg_catalog.replace(%s, %L, t.%I::pg_catalog.text)', expression, '{' || placeholder || '}', placeholder);
	END LOOP;
	RETURN format('pg_catalog.replace(pg_catalog.replace(%s, ''{{'', ''{''), ''}}'', ''}'')', expression);
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
	answer text[];
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
	SELECT a.answer INTO answer FROM lockfence._as_owner(target, format(
		'SELECT t.tableoid, coalesce(lockfence.resource_of(%L, t.*), %s), (%s)::pg_catalog.int8 FROM %s t WHERE %s', target,
		lockfence._filled_in(template), coalesce('t.' || quote_ident(stage.token_column), 'NULL'), target, condition),
		'pg_catalog, pg_temp') a;
	stage.leaf := answer[1]::oid;
	stage.resource := answer[2];
	IF stage.leaf IS NULL THEN
		RAISE EXCEPTION 'the drill found no row of table "%" with this key', lockfence._visible(target::text)
			USING ERRCODE = 'no_data_found', HINT = 'Name a row that exists. What the drill does to it is rolled back.';
	END IF;
	stage.token := greatest(answer[3]::bigint, 0,
		(SELECT m.token FROM lockfence.mark m WHERE m.resource = stage.resource),
		(SELECT max(s.value) FROM lockfence.state s WHERE s.name IN ('floor', 'minimum')),
		(SELECT s.value << 48 FROM lockfence.state s WHERE s.name = 'epoch')) + 1;
	RETURN stage;
END
$$;
COMMENT ON FUNCTION lockfence._set_stage(regclass, text) IS
'finds out what a drill needs to know of its table';

-- No ambient token, which would count for the stale holder as well; and not by
-- guarded_update() if there is another way, as it refuses a broken fence.
CREATE FUNCTION lockfence._take_over(
	stage lockfence._stage, key jsonb, changes jsonb, token bigint, caller_path text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	written bigint;
BEGIN
	IF stage.resource IS NOT NULL THEN
		PERFORM lockfence.present(stage.resource, token);
	END IF;
	IF stage.is_row_fence AND stage.takes_presented_only THEN
		written := lockfence._guarded_as_owner(stage.target, key, changes, token, caller_path);
	ELSE
		SELECT a.written INTO written
		FROM lockfence._as_owner(stage.target, format('UPDATE %s t SET %s%s WHERE %s', stage.target,
			lockfence._assignments(stage.target, changes), ', ' || quote_ident(stage.token_column) || ' = ' || token,
			lockfence._condition(stage.target, key)), caller_path) a;
	END IF;
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

-- The paths by which the stale holder tries to write, in the order in which they are
-- tried; no statement: a path that is closed, and why.
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
			CASE WHEN NOT lockfence._is_unique(stage.target, key) THEN 'the key is not a unique index of the table' END),
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
'the statements that the stale holder of a drill tries';

-- The table's own triggers run under the caller's search path.
CREATE FUNCTION lockfence._carry_out(
	path text, statement text, stage lockfence._stage, key jsonb, changes jsonb, caller_path text)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	CASE path
		WHEN 'present' THEN
			PERFORM lockfence.present(stage.resource, stage.token);
			RETURN 1;
		WHEN 'guarded_update' THEN
			RETURN lockfence._guarded_as_owner(stage.target, key, changes, stage.token, caller_path);
		WHEN 'guarded_delete' THEN
			RETURN lockfence._guarded_as_owner(stage.target, key, NULL, stage.token, caller_path);
		ELSE
			RETURN (SELECT a.written FROM lockfence._as_owner(stage.target, statement, caller_path) a);
	END CASE;
END
$$;
COMMENT ON FUNCTION lockfence._carry_out(text, text, lockfence._stage, jsonb, jsonb, text) IS
'executes a statement of the stale holder, as the table''s owner if it writes; returns the number of rows';

-- Any error is an answer, so all are expected.
CREATE FUNCTION lockfence._try(
	path text, presented bigint, statement text, stage lockfence._stage, key jsonb, changes jsonb, caller_path text,
	OUT verdict text, OUT code text, OUT message text)
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
	written := lockfence._carry_out(path, statement, stage, key, changes, caller_path);
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
COMMENT ON FUNCTION lockfence._try(text, bigint, text, lockfence._stage, jsonb, jsonb, text) IS
'the outcome of a statement of the stale holder, which is rolled back';

CREATE TYPE lockfence._outcome AS (path text, verdict text, code text, message text, statement text);
COMMENT ON TYPE lockfence._outcome IS
'the outcome of a statement of drill()';

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
		SET CONSTRAINTS ALL IMMEDIATE;
		stage := lockfence._set_stage(target, condition);
		PERFORM lockfence._assignments(target, changes);
		PERFORM lockfence._take_over(stage, key, changes, stage.token, caller_path);
		PERFORM lockfence._take_over(stage, key, changes, stage.token + 1, caller_path);
		FOR way IN SELECT * FROM lockfence._ways(stage, key, changes, stage.token) LOOP
			found := (way.path, 'skipped', NULL, way.reason, NULL);
			IF way.statement IS NOT NULL THEN
				SELECT way.path, t.verdict, t.code, t.message, way.statement INTO found
				FROM lockfence._try(way.path, way.presented, way.statement, stage, key, changes, caller_path) t;
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
'plays a stale holder on a row of a table: a grant writes, a newer one takes over and writes, and the first one tries to write again, by every path there is. verdict: refused (as it should be), accepted (a stale write passed), ignored (no row, and no error), error (something other than the fence stopped it), skipped (message says why). Everything is rolled back. Waits for transactions that hold the row or its resource. The table''s triggers, and everything else that it evaluates, run as its owner, in a security-restricted operation. For tests; takes a superuser, or a role with the owner''s rights. Example: SELECT * FROM lockfence.drill(''batch'', ''{"batch_id": 9921}'', ''{"state": "settled"}'')';

REVOKE ALL ON FUNCTION lockfence.drill(regclass, jsonb, jsonb, text) FROM PUBLIC;
