-- Lock tables of the hostile owner, which a superuser has issue tokens: whatever a grant might evaluate of what the owner
-- has defined runs as the owner, if the owner takes the lock, or not at all.
SET client_min_messages = warning;
SET search_path = mal, pg_catalog;

CREATE TABLE lock (
	id colour PRIMARY KEY, place place, odd odd CHECK (mal.spring('check of a lock')), note text DEFAULT mal.spring_text('default', 'x'),
	more bigint GENERATED ALWAYS AS (mal.spring_int('generated column', 1)) STORED);
CREATE INDEX ON lock (mal.spring_int('index expression', odd)) WHERE mal.spring_int('index predicate', odd) > 0;
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE ON lock FOR EACH ROW EXECUTE FUNCTION spring_trigger();
CREATE TRIGGER "~~" AFTER INSERT OR UPDATE ON lock FOR EACH ROW EXECUTE FUNCTION spring_trigger();
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT OR UPDATE ON lock DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION spring_trigger();
ALTER TABLE lock ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON lock USING (mal.spring('policy of a lock'));
CREATE TABLE parted_lock (id odd, note text) PARTITION BY RANGE (mal.spring_int('partition key', id));
CREATE TABLE parted_lock_1 PARTITION OF parted_lock FOR VALUES FROM (0) TO (10);
-- The columns of these have literals that evaluate: an element of theirs is of a domain.
CREATE TYPE odd_range AS RANGE (subtype = odd);
CREATE TYPE odd_pair AS (x odd, y text);
CREATE DOMAIN odds AS odd[];
CREATE TABLE literal_lock (id int, note text, odds odd[], span odd_range, pairs odd_pair[], hidden odds);
