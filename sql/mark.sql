-- ---------------------------------------------------------------- marks

-- COLLATE "C": an index that a new C library sorts differently would miss
-- marks.  Half-full pages: an advance is then a heap-only update.
CREATE TABLE lockfence.mark (
	token lockfence.fence_token NOT NULL,
	advanced_at timestamp with time zone NOT NULL,
	resource text COLLATE "C" NOT NULL,
	CONSTRAINT mark_pkey PRIMARY KEY (resource)
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE lockfence.mark IS
'the high-water mark of each named resource: the highest token accepted. Only the fence writes it; see raise_mark(), reset_mark(), prune()';
COMMENT ON COLUMN lockfence.mark.token IS 'the highest token accepted';
COMMENT ON COLUMN lockfence.mark.advanced_at IS 'start of the transaction that accepted it';
COMMENT ON COLUMN lockfence.mark.resource IS 'the name of the resource, as its lock is named';

-- Only for speed: what it leads to is checked, and the primary key decides.
CREATE INDEX mark_hash ON lockfence.mark USING hash (resource);
COMMENT ON INDEX lockfence.mark_hash IS
'finds a mark faster than the primary key, which decides if this index is missing';

CREATE TABLE lockfence.state (
	name text COLLATE "C" NOT NULL,
	value bigint NOT NULL,
	CONSTRAINT state_pkey PRIMARY KEY (name),
	CONSTRAINT state_is_valid CHECK (
		(name OPERATOR(pg_catalog.=) 'epoch' AND value BETWEEN 0 AND 32767) OR
		(name OPERATOR(pg_catalog.=) ANY (ARRAY['floor', 'minimum']) AND value OPERATOR(pg_catalog.>) 0) OR
		(pg_catalog.starts_with(name, 'timeline:') AND value BETWEEN 1 AND 4294967295))
) USING heap;
COMMENT ON TABLE lockfence.state IS
'what applies to every resource: the current epoch (no row: any); the minimum that reopen() has set, below which every token is stale (no row: none); the floor, which stands for the marks that prune() has folded (no row: none); and, under the name of the cluster''s system identifier, the timeline on record';

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
) USING heap;
COMMENT ON TABLE lockfence.admin_log IS
'every call of an administration function: when, who (the session''s role), which function, the token or epoch before and after, and why';

SELECT pg_catalog.pg_extension_config_dump('lockfence.mark', '');
-- Not the timeline: it is true of these files only, and not of a database that a dump makes.
SELECT pg_catalog.pg_extension_config_dump('lockfence.state',
	'WHERE NOT pg_catalog.starts_with(name, ''timeline:'')');
SELECT pg_catalog.pg_extension_config_dump('lockfence.admin_log', '');
SELECT pg_catalog.pg_extension_config_dump('lockfence.admin_log_id_seq', '');

REVOKE ALL ON lockfence.mark, lockfence.state, lockfence.admin_log FROM PUBLIC;
-- Not to PUBLIC: a client that reads the mark and presents it is not the holder, but
-- nothing would tell it apart.
GRANT SELECT ON lockfence.mark, lockfence.state, lockfence.admin_log TO pg_monitor;
-- pg_dump reads it, too.
GRANT SELECT ON SEQUENCE lockfence.admin_log_id_seq TO pg_monitor;

CREATE FUNCTION lockfence.guard_mark() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_guard_mark';
COMMENT ON FUNCTION lockfence.guard_mark() IS
'trigger of lockfence.mark: turns DML, as in a data restore, into raised marks; refuses with LF009 what would lower or remove a mark';

CREATE FUNCTION lockfence.guard_marks() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_guard_marks';
COMMENT ON FUNCTION lockfence.guard_marks() IS
'trigger of lockfence.mark: refuses TRUNCATE with LF009';

-- As the owner: a role that restores a dump needs to insert, and no more.
CREATE FUNCTION lockfence.merge_state() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
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
'trigger of lockfence.state: if DML, as in a data restore, brings a value that is there already, the higher one stays; the timeline is not taken';

CREATE FUNCTION lockfence.state_changed() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'lockfence_state_changed';
COMMENT ON FUNCTION lockfence.state_changed() IS
'trigger of lockfence.state: makes every session read the table again';

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
