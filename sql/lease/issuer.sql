-- ---------------------------------------------------------------- lock tables that become issuers

-- An issuer is declared by its trigger: the events and the condition say what a grant is, the arguments what is issued.
-- This table has a copy, so that verify() can tell that the trigger is gone, or is another one.
CREATE TABLE lockfence.issuer (
	target lockfence._relation NOT NULL,
	definition text COLLATE "C" NOT NULL
) USING heap;
COMMENT ON TABLE lockfence.issuer IS
'the lock tables that issue tokens, as issue_from() has declared them';
COMMENT ON COLUMN lockfence.issuer.target IS 'the lock table';
COMMENT ON COLUMN lockfence.issuer.definition IS 'its trigger, without the names of trigger and table';

-- Rows of dropped tables are not dumped: in another database their OIDs may be those of other tables.
SELECT pg_catalog.pg_extension_config_dump('lockfence.issuer',
	'WHERE EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) target)');

-- Without one, a publication of all tables would not let issue_from() delete here.
ALTER TABLE lockfence.issuer REPLICA IDENTITY FULL;

REVOKE ALL ON lockfence.issuer FROM PUBLIC;
-- It says nothing that the catalogs do not.
GRANT SELECT ON lockfence.issuer TO PUBLIC;

CREATE FUNCTION lockfence.issue_row() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_issue_row';
COMMENT ON FUNCTION lockfence.issue_row() IS
'trigger of a lock table, AFTER INSERT OR UPDATE FOR EACH ROW: issues the next token of the resource that the row names, and records its owner; see issue_from()';

-- A trigger that issues is recognized by its function, since an owner may give a trigger any name.  The triggers of
-- partitions are clones of their parent's.
CREATE FUNCTION lockfence._issuer_triggers(tables regclass[])
RETURNS TABLE (id oid, target regclass, name name, is_cloned boolean, enabled "char", arguments text[], definition text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT t.oid, t.tgrelid, t.tgname, t.tgparentid <> 0, t.tgenabled, lockfence._argument_list(t.tgargs, t.tgnargs),
		concat_ws(' ', CASE WHEN t.tgtype & 2 = 0 THEN 'AFTER' ELSE 'BEFORE' END,
			CASE WHEN t.tgtype & 4 <> 0 THEN 'INSERT' END, CASE WHEN t.tgtype & 16 <> 0 THEN 'UPDATE' END,
			(SELECT format('OF (%s)', string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname COLLATE "C"))
				FROM pg_attribute a WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr) HAVING count(*) > 0),
			substr(d.text, strpos(d.text, ' FOR EACH ') + 1))
	FROM pg_trigger t CROSS JOIN LATERAL pg_get_triggerdef(t.oid) AS d (text)
	WHERE t.tgfoid = 'lockfence.issue_row()'::regprocedure AND (tables IS NULL OR t.tgrelid = ANY (tables))
$$;
COMMENT ON FUNCTION lockfence._issuer_triggers(regclass[]) IS
'the triggers of some tables (null: of all) that issue tokens';

CREATE FUNCTION lockfence._issuer_argument(arguments text[], setting text)
RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT substr(a.argument, length(setting) + 2)
	FROM unnest(arguments) WITH ORDINALITY AS a (argument, place)
	WHERE starts_with(a.argument, setting || '=')
	ORDER BY a.place LIMIT 1
$$;
COMMENT ON FUNCTION lockfence._issuer_argument(text[], text) IS
'one of the settings that the arguments of an issuer''s trigger declare; null: it is not there';

CREATE VIEW lockfence.issuers AS
SELECT i.target, lockfence._issuer_argument(i.arguments, 'resource') AS resource,
	lockfence._issuer_argument(i.arguments, 'owner') AS owner,
	ARRAY(SELECT a.attname FROM pg_catalog.pg_attribute a
		WHERE a.attrelid OPERATOR(pg_catalog.=) t.tgrelid AND a.attnum OPERATOR(pg_catalog.=) ANY (t.tgattr) ORDER BY a.attnum) AS granted_by,
	pg_catalog.substring(i.definition, ' WHEN \((.*)\) EXECUTE FUNCTION ') AS held,
	pg_catalog.substring(lockfence._issuer_argument(i.arguments, 'wait'), '^\d{1,9}$')::pg_catalog.int4
		OPERATOR(pg_catalog.*) '1 millisecond'::pg_catalog.interval AS wait,
	i.enabled OPERATOR(pg_catalog.=) 'A' AS is_always
FROM lockfence._issuer_triggers(NULL) i JOIN pg_catalog.pg_trigger t ON t.oid OPERATOR(pg_catalog.=) i.id
WHERE NOT i.is_cloned;
COMMENT ON VIEW lockfence.issuers IS
'the lock tables that issue tokens, with their settings as issue_from() takes them; is_always: the trigger fires in every session. verify() reports a trigger that is not as it was declared';
GRANT SELECT ON lockfence.issuers TO PUBLIC;

-- The lock tables of known libraries, and what a grant is in them.  As far as the table and the library allow, an owner
-- names a single grant: if the next grant could have the same name, a stale holder would be told its token.
CREATE FUNCTION lockfence._issuer_presets()
RETURNS TABLE (name text, columns name[], resource text, owner text, granted_by name[], held text)
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT p.*
	FROM (VALUES
		('shedlock', '{name,lock_until,locked_at,locked_by}'::name[],
			'shedlock:{name}', '{locked_by}', '{locked_at}'::name[], NULL),
		('spring', '{lock_key,region,client_id,created_date}',
			'spring:{region}:{lock_key}', '{client_id}', '{client_id}', NULL),
		('liquibase', '{id,locked,lockgranted,lockedby}',
			'liquibase', '{lockedby}', '{locked}', 'NEW.locked'),
		('db-scheduler', '{task_name,task_instance,picked,picked_by,last_heartbeat,version}',
			'db-scheduler:{task_name}:{task_instance}', '{picked_by}:{version}', '{picked_by}', 'NEW.picked'),
		('river-leader', '{name,leader_id,elected_at,expires_at}',
			'river:{name}', '{leader_id}', NULL, NULL),
		('river', '{id,state,attempt,attempted_at,attempted_by}',
			'river:job:{id}', '{attempted_at}', '{attempted_at}', 'NEW.state = ''running'''),
		('graphile-worker', '{id,locked_by,locked_at,attempts,revision}',
			'graphile-worker:{id}', '{locked_by}:{revision}:{attempts}', '{locked_by}', 'NEW.locked_by IS NOT NULL'),
		('pg-boss', '{id,name,state,started_on,retry_count}',
			'pg-boss:{name}:{id}', '{retry_count}', '{started_on}', 'NEW.state = ''active'''),
		('good_job', '{id,locked_by_id,locked_at}',
			'good_job:{id}', '{locked_by_id}', '{locked_by_id}', 'NEW.locked_by_id IS NOT NULL'),
		('solid_queue', '{job_id,process_id}',
			'solid_queue:{job_id}', '{process_id}', NULL, NULL),
		('hangfire', '{resource,acquired,updatecount}',
			'hangfire:{resource}', 'hangfire', NULL, NULL)
	) AS p (name, columns, resource, owner, granted_by, held)
$$;
COMMENT ON FUNCTION lockfence._issuer_presets() IS
'the settings of issue_from() for the lock tables of known libraries, and the columns that such a table has';

CREATE FUNCTION lockfence._check_preset(target regclass, preset text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	missing text;
BEGIN
	IF preset NOT IN (SELECT p.name FROM lockfence._issuer_presets() p) THEN
		RAISE EXCEPTION 'invalid value for "preset": %', lockfence._visible(quote_literal(preset))
			USING ERRCODE = 'invalid_parameter_value',
				HINT = format('Use one of: %s.', (SELECT string_agg(p.name, ', ' ORDER BY p.name COLLATE "C") FROM lockfence._issuer_presets() p));
	END IF;
	SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.place) INTO missing
	FROM lockfence._issuer_presets() p CROSS JOIN unnest(p.columns) WITH ORDINALITY AS c (name, place)
	WHERE p.name = preset AND NOT EXISTS (
		SELECT FROM pg_attribute a WHERE a.attrelid = target AND a.attname = c.name AND a.attnum > 0 AND NOT a.attisdropped);
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION 'table "%" does not match preset "%"', lockfence._visible(target::text), preset
			USING ERRCODE = 'undefined_column',
				DETAIL = format('It lacks these columns: %s.', missing),
				HINT = 'Name the table that holds the locks. If its columns have other names, leave the preset out and give resource, owner, granted_by and held.';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_preset(regclass, text) IS
'raises an error if there is no such preset, or the table does not match it';

CREATE FUNCTION lockfence._check_preset_owner(preset text, resource text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	known record;
BEGIN
	SELECT p.* INTO known FROM lockfence._issuer_presets() p WHERE p.name = preset;
	IF NOT lockfence._placeholders(resource) @> lockfence._placeholders(known.resource) THEN
		RAISE EXCEPTION 'preset "%" needs an owner for this resource', preset
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('Several rows can share the resource %s, and the preset''s owner, %s, tells their grants apart only if they do not.',
					lockfence._visible(quote_literal(resource)), known.owner),
				HINT = format('Give an owner that names the row too, or a resource that contains %s.',
					array_to_string(ARRAY(SELECT '{' || c || '}' FROM unnest(lockfence._placeholders(known.resource)) c), ' and '));
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_preset_owner(text, text) IS
'raises an error if the owner that a preset gives could stand for the grants of two rows with this resource';

CREATE FUNCTION lockfence._check_issuer_table(target regclass)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	class pg_class;
	reason text;
BEGIN
	SELECT * INTO class FROM pg_class WHERE oid = target;
	reason := CASE
		WHEN class.relkind NOT IN ('r', 'p') THEN 'It is not a table.'
		WHEN class.relnamespace IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace, 'lockfence'::regnamespace)
			THEN 'It is a table of the system or of lockfence.'
		WHEN class.relpersistence = 't' THEN 'It is a temporary table, which other sessions cannot use as a lock.'
		WHEN class.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = target)
			THEN 'Other tables inherit from it, and its trigger does not see their rows.'
	END;
	IF reason IS NOT NULL THEN
		RAISE EXCEPTION '"%" cannot issue tokens', lockfence._visible(target::text)
			USING ERRCODE = 'wrong_object_type', DETAIL = reason, HINT = 'Name the table that holds the locks.';
	END IF;
	IF EXISTS (SELECT FROM lockfence._issuer_triggers(ARRAY[target])) THEN
		RAISE EXCEPTION 'table "%" already issues tokens', lockfence._visible(target::text)
			USING ERRCODE = 'duplicate_object', HINT = 'Use lockfence.stop_issuing() first to change what it issues.';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_issuer_table(regclass) IS
'raises an error if a table cannot issue tokens, or already does';

-- A literal in a condition is read when the trigger is created.  For a column of an array or range type that reads the
-- elements, and evaluates the checks of the domains that they are of, which others may have defined.
CREATE FUNCTION lockfence._check_condition(target regclass)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	found_column record;
BEGIN
	WITH RECURSIVE part AS (
		SELECT a.attname, a.atttypid AS type, false AS is_inside
		FROM pg_attribute a WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped
		UNION
		SELECT p.attname, i.type, p.is_inside OR t.typtype <> 'd'
		FROM part p JOIN pg_type t ON t.oid = p.type CROSS JOIN LATERAL (
			SELECT t.typbasetype WHERE t.typtype = 'd'
			UNION ALL SELECT t.typelem WHERE t.typelem <> 0
			UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, (to_jsonb(r) ->> 'rngmultitypid')::oid)
			UNION ALL SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
		) AS i (type)
	)
	SELECT p.attname, p.type::regtype AS domain INTO found_column
	FROM part p JOIN pg_type t ON t.oid = p.type
	WHERE p.is_inside AND t.typtype = 'd' AND t.typnamespace NOT IN ('pg_catalog'::regnamespace, 'lockfence'::regnamespace)
	ORDER BY p.attname, p.type LIMIT 1;
	IF FOUND AND (SELECT pg_get_userbyid(relowner) <> current_user FROM pg_class WHERE oid = target) THEN
		RAISE EXCEPTION 'a condition for lock table "%" can be declared by its owner only', lockfence._visible(target::text)
			USING ERRCODE = 'insufficient_privilege',
				DETAIL = lockfence._visible(format('The type of column "%s" contains domain %s, whose checks a literal in the condition would evaluate with your rights.',
					found_column.attname, found_column.domain)),
				HINT = 'Leave held out, or have the owner of the table call lockfence.issue_from().';
	END IF;
END
$$;
COMMENT ON FUNCTION lockfence._check_condition(regclass) IS
'raises an error if reading a condition on a table''s columns could run what another role than the caller has defined';

CREATE FUNCTION lockfence._issuer_placeholders(setting text, template text)
RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF template IS NULL THEN
		RAISE EXCEPTION '% must not be null', setting
			USING ERRCODE = 'null_value_not_allowed', HINT = 'Give one, or a preset.';
	END IF;
	IF template = '' OR octet_length(template) > 1024 THEN
		RAISE EXCEPTION '% must be 1 to 1024 bytes long', setting USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF lockfence._placeholders(template) IS NULL THEN
		RAISE EXCEPTION 'invalid %: %', setting, lockfence._visible(quote_literal(template))
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'A placeholder is the name of a column in braces; a brace that belongs to the name itself is written twice.';
	END IF;
	RETURN lockfence._placeholders(template);
END
$$;
COMMENT ON FUNCTION lockfence._issuer_placeholders(text, text) IS
'the columns that a template names; raises an error if it is not a template';

CREATE FUNCTION lockfence._check_issuer_template(target regclass, setting text, template text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	placeholder text;
	generated "char";
BEGIN
	FOREACH placeholder IN ARRAY lockfence._issuer_placeholders(setting, template) LOOP
		SELECT a.attgenerated INTO generated FROM pg_attribute a
		WHERE a.attrelid = target AND a.attname = placeholder AND a.attnum > 0 AND NOT a.attisdropped;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'column "%" of table "%" does not exist', lockfence._visible(placeholder), lockfence._visible(target::text)
				USING ERRCODE = 'undefined_column',
					DETAIL = format('The %s "%s" names it as a placeholder.', setting, lockfence._visible(template)),
					HINT = 'A brace that belongs to the name itself is written twice.';
		ELSIF generated <> '' THEN
			RAISE EXCEPTION 'generated column "%" cannot be a placeholder', lockfence._visible(placeholder)
				USING ERRCODE = 'feature_not_supported', HINT = 'Name the columns that it is computed from.';
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION lockfence._check_issuer_template(regclass, text, text) IS
'raises an error if a template names a column that the lock table does not have, or a generated one';

CREATE FUNCTION lockfence._wait_milliseconds(wait interval)
RETURNS integer
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF wait IS NULL OR wait < '1 millisecond' OR wait > '1 hour' THEN
		RAISE EXCEPTION 'wait must be between 1 millisecond and 1 hour'
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'A grant waits this long for the open transaction of the previous holder.';
	END IF;
	RETURN extract(epoch FROM wait) * 1000;
END
$$;
COMMENT ON FUNCTION lockfence._wait_milliseconds(interval) IS
'how long a grant waits, as lock_timeout takes it';

-- The caller writes the condition, as for any trigger: it runs with the rights of the sessions that write to the lock
-- table; what reading it runs: see _check_condition().  The line break ends a comment in it.
CREATE FUNCTION lockfence._create_issuer(
	target regclass, resource text, owner text, granted_by name[], held text, milliseconds integer)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	columns text := (SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.place)
		FROM unnest(granted_by) WITH ORDINALITY AS c (name, place));
	member record;
BEGIN
	EXECUTE format(E'CREATE TRIGGER "~lockfence_issue" AFTER INSERT%s ON %s FOR EACH ROW%s EXECUTE FUNCTION lockfence.issue_row(%L, %L, %L)',
		' OR UPDATE OF ' || columns, target, E' WHEN (' || held || E'\n)',
		'resource=' || resource, 'owner=' || owner, 'wait=' || milliseconds);
	FOR member IN
		SELECT t.target, t.name FROM lockfence._issuer_triggers(ARRAY(SELECT f.member FROM lockfence._family(_create_issuer.target) f)) t
	LOOP
		EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %I', member.target, member.name);
	END LOOP;
END
$$;
COMMENT ON FUNCTION lockfence._create_issuer(regclass, text, text, name[], text, integer) IS
'creates the trigger by which a lock table issues tokens, and makes it fire always';

CREATE FUNCTION lockfence._write_issuer(target regclass)
RETURNS bigint
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
	DELETE FROM lockfence.issuer i
	WHERE i.target::oid = _write_issuer.target OR NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = i.target);
	WITH recorded AS (
		INSERT INTO lockfence.issuer (target, definition)
		SELECT t.target::text::lockfence._relation, t.definition
		FROM lockfence._issuer_triggers(ARRAY[_write_issuer.target]) t WHERE NOT t.is_cloned
		RETURNING 1
	)
	SELECT count(*) FROM recorded
$$;
COMMENT ON FUNCTION lockfence._write_issuer(regclass) IS
'puts on record how a table issues tokens now, or that it does not, for a caller that may write the record; returns how many of its triggers do';

CREATE FUNCTION lockfence._record_issuer(target regclass)
RETURNS void
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'lockfence_record_issuer';
COMMENT ON FUNCTION lockfence._record_issuer(regclass) IS
'puts on record how a table issues tokens now, or that it does not. For the table''s owner';

CREATE FUNCTION lockfence.issue_from(
	target regclass,
	resource text DEFAULT NULL,
	owner text DEFAULT NULL,
	granted_by name[] DEFAULT NULL,
	held text DEFAULT NULL,
	wait interval DEFAULT '500ms',
	preset text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
	known record;
BEGIN
	IF target IS NULL THEN
		RAISE EXCEPTION 'target must not be null' USING ERRCODE = 'null_value_not_allowed';
	END IF;
	PERFORM lockfence._check_issuer_table(target);
	EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', target);
	-- the literals of presets are no arrays or ranges
	IF held IS NOT NULL THEN
		PERFORM lockfence._check_condition(target);
	END IF;
	IF preset IS NOT NULL THEN
		PERFORM lockfence._check_preset(target, preset);
	END IF;
	IF owner IS NULL THEN
		PERFORM lockfence._check_preset_owner(preset, resource);
	END IF;
	SELECT p.* INTO known FROM lockfence._issuer_presets() p WHERE p.name = preset;
	resource := coalesce(resource, known.resource);
	owner := coalesce(owner, known.owner);
	PERFORM lockfence._check_issuer_template(target, 'resource', resource);
	PERFORM lockfence._check_issuer_template(target, 'owner', owner);
	PERFORM lockfence._create_issuer(target, resource, owner, coalesce(granted_by, known.granted_by),
		coalesce(held, known.held), lockfence._wait_milliseconds(wait));
	PERFORM lockfence._record_issuer(target);
	PERFORM lockfence._warn_of_issuer(target);
END
$$;
COMMENT ON FUNCTION lockfence.issue_from(regclass, text, text, name[], text, interval, text) IS
'makes a lock table issue a token with each grant. A grant is an INSERT, or an UPDATE that sets one of the columns granted_by, of a row that meets the condition held (on NEW; null: every row). resource and owner name columns of the row in {braces}; token_of() and present_as() find the token by these names. If the previous holder has a transaction open, the grant waits for it as long as wait, and then fails with 55P03. preset: the settings for a known library, for those that are null. Example: SELECT lockfence.issue_from(''shedlock'', preset => ''shedlock'')';

CREATE FUNCTION lockfence.stop_issuing(target regclass)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	issuer record;
	found_any boolean := EXISTS (SELECT FROM lockfence.issuer i WHERE i.target::oid = stop_issuing.target);
BEGIN
	FOR issuer IN SELECT t.* FROM lockfence._issuer_triggers(ARRAY[stop_issuing.target]) t LOOP
		IF issuer.is_cloned THEN
			RAISE EXCEPTION 'table "%" issues tokens as a partition', lockfence._visible(target::text)
				USING ERRCODE = 'wrong_object_type',
					HINT = format('Use lockfence.stop_issuing(%s).', lockfence._literal(pg_partition_root(target)::text));
		END IF;
		EXECUTE format('DROP TRIGGER %I ON %s', issuer.name, issuer.target);
		found_any := true;
	END LOOP;
	IF NOT found_any THEN
		RAISE EXCEPTION 'table "%" issues no tokens', lockfence._visible(target::text) USING ERRCODE = 'undefined_object';
	END IF;
	PERFORM lockfence._record_issuer(target);
END
$$;
COMMENT ON FUNCTION lockfence.stop_issuing(regclass) IS
'makes a lock table issue no more tokens; those that it has issued stay as they are';

-- A role that may call these can take over any resource, by a lock table of its own.
REVOKE ALL ON FUNCTION
	lockfence.issue_row(),
	lockfence._write_issuer(regclass),
	lockfence._record_issuer(regclass),
	lockfence.issue_from(regclass, text, text, name[], text, interval, text),
	lockfence.stop_issuing(regclass)
FROM PUBLIC;
