-- What is fuzzed: functions of one input, and the properties that hold for any.  See test/fuzz/run.
CREATE EXTENSION lockfence;
CREATE SCHEMA fuzz;
CREATE PROCEDURE fuzz.run(target text, arguments text[]) LANGUAGE c AS '$libdir/lockfence', 'lockfence_fuzz_run';

CREATE FUNCTION fuzz.require(holds boolean, property text, VARIADIC facts text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF holds IS NOT TRUE THEN
		RAISE EXCEPTION USING ERRCODE = 'FUZZ1', MESSAGE = property, DETAIL = array_to_string(facts, ' | ', '(null)');
	END IF;
END
$$;

-- ---------------------------------------------------------------- resource templates

-- The name by the book: what docs/reference.md says of templates, done by regular expressions.
CREATE FUNCTION fuzz.expand(template text, names text[], texts text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	part text[];
	covered text := '';
	name text := '';
BEGIN
	FOR part IN SELECT regexp_matches(template, '(\{\{|\}\})|\{([^{}]+)\}|([^{}]+)', 'g') LOOP
		covered := covered || coalesce(part[1], '{' || part[2] || '}', part[3]);
		name := name || coalesce(substr(part[1], 1, 1), texts[array_position(names, part[2])],
			CASE WHEN part[2] IS NOT NULL THEN '?' END, part[3]);
	END LOOP;
	RETURN CASE WHEN covered = template THEN name END;
END
$$;

-- A template is split as the book says, or refused where the book has no meaning for it.
CREATE FUNCTION fuzz.template(input bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	template text := convert_from(input, 'UTF8');
	meaning text := fuzz.expand(template, '{}', '{}');
	columns text[];
	unknown int := (SELECT count(*) FROM regexp_matches(template, '(\{\{|\}\})|\{([^{}]+)\}|([^{}]+)', 'g') p WHERE p[2] IS NOT NULL);
BEGIN
	BEGIN
		columns := lockfence.template_columns(template);
	EXCEPTION WHEN invalid_parameter_value THEN
		PERFORM fuzz.require(meaning IS NULL, 'a good template is refused', template);
		RETURN;
	END;
	PERFORM fuzz.require(meaning IS NOT NULL, 'a bad template is accepted', template);
	PERFORM fuzz.require(cardinality(columns) = unknown, 'each placeholder is a column', template, columns::text);
END
$$;

-- ---------------------------------------------------------------- trigger arguments

CREATE TYPE fuzz.mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE fuzz.fenced (
	id int PRIMARY KEY, t text, n numeric, b bytea, d date, ts timestamptz, i interval, f float8, m fuzz.mood,
	a int[], j jsonb, "odd {name}" text, fence lockfence.fence_token, fence2 bigint);
INSERT INTO fuzz.fenced VALUES
	(1, 'text', 1.50, '\xdead', '2026-12-31', '2026-12-31 23:59:59+00', '1 day 02:03:04', 0.1, 'happy', '{1,NULL,3}', '{"k": [1]}', 'odd', 5, 5);
SELECT lockfence.attach('fuzz.fenced', 'fenced-{id}', token_column => 'fence');
CREATE FUNCTION fuzz.yes(resource text, token bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';

-- The row's texts under the settings that names are made under, which are not the session's.
CREATE FUNCTION fuzz.texts() RETURNS text[] LANGUAGE sql
SET DateStyle = 'ISO, YMD' SET TimeZone = 'UTC' SET IntervalStyle = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1
AS $$
	SELECT ARRAY[id::text, t, n::text, b::text, d::text, ts::text, i::text, f::text, m::text, a::text, j::text, "odd {name}", fence::text, fence2::text]
	FROM fuzz.fenced
$$;

-- Put arguments where a trigger has them, each ended by a zero byte.
CREATE FUNCTION fuzz.set_arguments(arguments bytea) RETURNS void LANGUAGE sql AS $$
	UPDATE pg_trigger SET tgargs = arguments, tgnargs = (SELECT count(*) FROM generate_series(1, length(arguments)) i
		WHERE get_byte(arguments, i - 1) = 0)
	WHERE tgrelid = 'fuzz.fenced'::regclass AND tgname = '~lockfence_row';
	-- has it noticed
	UPDATE pg_class SET relname = relname WHERE oid = 'fuzz.fenced'::regclass
$$;

-- Lines of text as such arguments.
CREATE FUNCTION fuzz.lines(input bytea) RETURNS bytea LANGUAGE sql AS $$
	SELECT string_agg(convert_to(line, 'UTF8') || '\x00', '' ORDER BY n)
	FROM regexp_split_to_table(convert_from(input, 'UTF8'), E'\n') WITH ORDINALITY AS s(line, n)
$$;

-- Settings as arguments.
CREATE FUNCTION fuzz.declare(resource text, token_column text, accept text, enforcement text, missing text, repeat text,
	validator regprocedure, advisory_since timestamptz) RETURNS bytea LANGUAGE sql AS $$
	SELECT string_agg(convert_to(setting || '=' || value, 'UTF8') || '\x00', '')
	FROM (VALUES ('resource', resource), ('token_column', token_column), ('accept', accept), ('enforcement', enforcement),
		('missing', missing), ('repeat', repeat), ('validator', validator::text), ('advisory_since', advisory_since::text)) s(setting, value)
	WHERE value IS NOT NULL
$$;

-- The last value of a setting by the book: each argument is SETTING=VALUE and ended by a zero byte.
CREATE FUNCTION fuzz.declared(arguments bytea, setting text, otherwise text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce((SELECT convert_from(decode(substr(argument, length(setting) + 2), 'escape'), 'UTF8')
			FROM regexp_split_to_table(encode(arguments, 'escape'), '\\000') WITH ORDINALITY AS s(argument, n)
			WHERE left(argument, length(setting) + 1) = setting || '='
			ORDER BY n DESC LIMIT 1),
		otherwise)
$$;

-- Settings are what the arguments say, and still so when they are declared anew.
CREATE FUNCTION fuzz.arguments(input bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	once record;
	again record;
BEGIN
	SELECT * INTO once FROM lockfence.fence_settings(input);
	SELECT * INTO again FROM lockfence.fence_settings(fuzz.declare(once.resource, once.token_column, once.accept,
		once.enforcement, once.missing, once.repeat, once.validator, once.advisory_since));
	PERFORM fuzz.require((once.resource, once.token_column, once.accept, once.enforcement, once.missing, once.repeat)
		IS NOT DISTINCT FROM (fuzz.declared(input, 'resource', NULL), fuzz.declared(input, 'token_column', NULL),
			fuzz.declared(input, 'accept', 'any'), fuzz.declared(input, 'enforcement', 'fenced'),
			fuzz.declared(input, 'missing', 'reject'), fuzz.declared(input, 'repeat', 'accept')),
		'settings are not what the arguments say', once::text);
	PERFORM fuzz.require(once IS NOT DISTINCT FROM again, 'settings change as they are declared anew', once::text, again::text);
END
$$;

-- A fence declared by any lines of text decides under the name that its settings give by the book, or lets
-- nothing pass; an advisory one may leave it undecided.
CREATE FUNCTION fuzz.trigger(input bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	arguments bytea := fuzz.lines(input);
	names text[] := (SELECT array_agg(attname ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = 'fuzz.fenced'::regclass AND attnum > 0);
	texts text[] := fuzz.texts();
	settings record;
	parsed boolean := true;
	name text;
BEGIN
	PERFORM fuzz.set_arguments(arguments);
	BEGIN
		SELECT * INTO settings FROM lockfence.fence_settings(arguments);
	EXCEPTION WHEN OTHERS THEN
		IF SQLSTATE LIKE 'XX%' THEN
			RAISE;
		END IF;
		parsed := false;
	END;
	PERFORM lockfence.present(7);
	UPDATE fuzz.fenced SET id = id;
	IF fuzz.declared(arguments, 'enforcement', 'fenced') = 'advisory' THEN
		RETURN;
	END IF;
	PERFORM fuzz.require(parsed, 'arguments that are refused let a write pass', convert_from(input, 'UTF8'));
	IF settings.resource IS NULL THEN
		PERFORM fuzz.require(settings.token_column = 'fence' AND fence = 7 OR settings.token_column = 'fence2' AND fence2 = 7,
			'a row does not have its token', convert_from(input, 'UTF8'), fence::text) FROM fuzz.fenced;
	ELSE
		name := fuzz.expand(settings.resource, names, texts);
		PERFORM fuzz.require((SELECT token = 7 FROM lockfence.mark WHERE resource = name),
			'the mark is not under its name', name, (SELECT string_agg(resource, ', ') FROM lockfence.mark));
	END IF;
	-- slow
	IF length(input) % 8 = 0 THEN
		PERFORM * FROM lockfence.verify('fuzz.fenced');
	END IF;
END
$$;

-- ---------------------------------------------------------------- tokens

-- A token is made of its parts; what is none is refused as such.
CREATE FUNCTION fuzz.check_token(token lockfence.fence_token) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM fuzz.require(token::text::lockfence.fence_token = token, 'a token changes as it is printed', token::text);
	PERFORM fuzz.require(lockfence.make_token(lockfence.token_epoch(token), lockfence.token_revision(token)) = token AND token > 0,
		'a token is not what it is made of', token::text);
	PERFORM fuzz.require(lockfence.present('fuzz', token) IS NULL, 'the first token has one before it', token::text);
	PERFORM fuzz.require(lockfence.present('fuzz', token) = token, 'the mark is not the token', token::text);
	PERFORM fuzz.require(lockfence.is_current('fuzz', token), 'a token that was just accepted is not current', token::text);
EXCEPTION WHEN SQLSTATE 'LF003' THEN
	PERFORM fuzz.require(token IS NULL OR token <= 0, 'a token is refused as none', token::text);
END
$$;

-- The input as text, and as the two numbers that a token is made of.
CREATE FUNCTION fuzz.token(input bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	epoch int := ('x' || encode(substr(input || '\x00000000', 1, 4), 'hex'))::bit(32)::int;
	revision bigint := ('x' || encode(substr(input || '\x000000000000000000000000', 5, 8), 'hex'))::bit(64)::bigint;
	token lockfence.fence_token;
BEGIN
	BEGIN
		token := lockfence.make_token(epoch, revision);
	EXCEPTION WHEN SQLSTATE 'LF003' THEN
		PERFORM fuzz.require(epoch NOT BETWEEN 0 AND 32767 OR revision NOT BETWEEN 0 AND 281474976710655 OR epoch + revision = 0,
			'good parts make no token', epoch::text, revision::text);
	END;
	IF token IS NOT NULL THEN
		PERFORM fuzz.require(lockfence.token_epoch(token) = epoch AND lockfence.token_revision(token) = revision,
			'a token has other parts', token::text, epoch::text, revision::text);
		PERFORM fuzz.check_token(token);
	END IF;
	PERFORM fuzz.check_token(convert_from(input, 'UTF8')::lockfence.fence_token);
END
$$;

-- ---------------------------------------------------------------- guarded_update()

CREATE TYPE fuzz.pair AS (x int, y text);
CREATE DOMAIN fuzz.even AS int CHECK (VALUE % 2 = 0);
CREATE TABLE fuzz.kinds (
	id int PRIMARY KEY, i2 smallint, i8 bigint, f4 real, n numeric(6, 2), flag boolean, t text, v varchar(5), c char(3), b bytea,
	d date, ts timestamptz, i interval, u uuid, m fuzz.mood, e fuzz.even, ia int[], ta text[], ja jsonb[], j json, jb jsonb,
	p fuzz.pair, r int4range, ip inet, bits varbit(8), "odd "" name" text);
INSERT INTO fuzz.kinds (id, t) VALUES (1, 'one'), (2, 'two');
SELECT lockfence.attach('fuzz.kinds', 'kinds-{id}');

-- The row with the texts of all its columns.
CREATE FUNCTION fuzz.row_text(row_id int) RETURNS text LANGUAGE sql AS $$
	SELECT k::text FROM fuzz.kinds k WHERE id = row_id
$$;

-- What PostgreSQL itself would make of the values, if it takes them.
CREATE FUNCTION fuzz.populated(row_id int, changes jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT jsonb_populate_record(k, changes)::text FROM fuzz.kinds k WHERE id = row_id);
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END
$$;

-- A line of JSON or, as chance makes more of, NAME=VALUE|NAME=VALUE|..., where a value may be JSON.
CREATE FUNCTION fuzz.value_of(word text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	RETURN word::jsonb;
EXCEPTION WHEN OTHERS THEN
	RETURN to_jsonb(word);
END
$$;
CREATE FUNCTION fuzz.object_of(line text) RETURNS jsonb LANGUAGE sql AS $$
	SELECT CASE WHEN line ~ '^[[{]' THEN line::jsonb
		ELSE (SELECT jsonb_object_agg(split_part(word, '=', 1), fuzz.value_of(substr(word, strpos(word, '=') + 1)))
			FROM regexp_split_to_table(line, '[|]') word) END
$$;

-- Two lines, the key and the changes.  A row gets the values that PostgreSQL makes of them, and keeps them when
-- it is given what it has.
CREATE FUNCTION fuzz.guarded(input bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	words text := convert_from(input, 'UTF8');
	key jsonb := fuzz.object_of(split_part(words, E'\n', 1));
	changes jsonb := fuzz.object_of(split_part(words, E'\n', 2));
	expected text := fuzz.populated(1, changes - 'id');
	before text := fuzz.row_text(1);
	stored text;
	again bigint;
BEGIN
	IF lockfence.guarded_update('fuzz.kinds', key, changes - 'id', 7) = 0 THEN
		PERFORM fuzz.require(fuzz.row_text(1) = before, 'no row was written and one changed', words);
		RETURN;
	END IF;
	stored := fuzz.row_text(1);
	PERFORM fuzz.require(stored = coalesce(expected, stored) OR stored = before, 'values are not what PostgreSQL makes of them',
		words, stored, expected);
	again := lockfence.guarded_update('fuzz.kinds', '{"id": 1}', (SELECT to_jsonb(k) - 'id' - 'p' FROM fuzz.kinds k WHERE id = 1), 7);
	PERFORM fuzz.require(again = 1, 'the row cannot be written with what it has', words);
	PERFORM fuzz.require(fuzz.row_text(1) = stored OR changes ? 'j', 'a row changes as it is given what it has', words, stored, fuzz.row_text(1));
	PERFORM fuzz.require(lockfence.guarded_delete('fuzz.kinds', key, 7) >= 0, 'a key that updates does not delete', words);
END
$$;
