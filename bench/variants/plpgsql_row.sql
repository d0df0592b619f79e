-- By hand: a row trigger in PL/pgSQL that compares the token with the one in the row.
ALTER TABLE target ADD fence bigint NOT NULL DEFAULT 5;
CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF new.fence < old.fence THEN
		RAISE EXCEPTION 'stale token %', new.fence;
	END IF;
	RETURN new;
END
$$;
CREATE TRIGGER guard BEFORE UPDATE ON target FOR EACH ROW EXECUTE FUNCTION guard();
-- each
UPDATE target SET v = :v, fence = :token WHERE id = :id;
