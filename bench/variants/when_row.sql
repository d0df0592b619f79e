-- By hand: the same where the trigger's WHEN clause compares, and the function is called for stale tokens only.
ALTER TABLE target ADD fence bigint NOT NULL DEFAULT 5;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'stale token %', new.fence;
END
$$;
CREATE TRIGGER guard BEFORE UPDATE ON target
FOR EACH ROW WHEN (new.fence < old.fence) EXECUTE FUNCTION refuse();
-- each
UPDATE target SET v = :v, fence = :token WHERE id = :id;
