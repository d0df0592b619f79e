-- No guard at all, under the names of the real one: the same tables and statements
-- must now break the property, or the test would prove nothing.

CREATE SCHEMA lockfence;
CREATE DOMAIN lockfence.fence_token AS bigint;

CREATE FUNCTION lockfence.attach(target regclass, resource text DEFAULT NULL, token_column name DEFAULT NULL,
                                 accept text DEFAULT 'any',
                                 repeat text DEFAULT 'accept') RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF resource IS NULL OR token_column IS NOT NULL THEN
        EXECUTE pg_catalog.format('ALTER TABLE %s ADD COLUMN %I lockfence.fence_token',
                                  target, coalesce(token_column, 'fence'));
    END IF;
END $$;

CREATE FUNCTION lockfence.present(token lockfence.fence_token) RETURNS void
LANGUAGE sql AS '';

CREATE FUNCTION lockfence.present(resource text, token lockfence.fence_token) RETURNS lockfence.fence_token
LANGUAGE sql AS 'SELECT NULL::lockfence.fence_token';

CREATE FUNCTION lockfence.guarded_update(target regclass, key jsonb, changes jsonb,
                                         token lockfence.fence_token) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    EXECUTE pg_catalog.format('UPDATE %s SET val = $3 WHERE id = $1 AND line = $2', target)
        USING (key->>'id')::int, (key->>'line')::int, (changes->>'val')::int;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END $$;

CREATE FUNCTION lockfence.guarded_delete(target regclass, key jsonb, token lockfence.fence_token) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    EXECUTE pg_catalog.format('DELETE FROM %s WHERE id = $1 AND line = $2', target)
        USING (key->>'id')::int, (key->>'line')::int;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END $$;

CREATE FUNCTION lockfence.raise_mark(resource text, token lockfence.fence_token, reason text) RETURNS void
LANGUAGE sql AS '';

CREATE FUNCTION lockfence.reset_mark(resource text, token lockfence.fence_token, reason text) RETURNS void
LANGUAGE sql AS '';

CREATE FUNCTION lockfence.prune(older_than interval) RETURNS bigint
LANGUAGE sql AS 'SELECT 0::bigint';
