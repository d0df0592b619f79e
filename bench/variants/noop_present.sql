-- A function that takes what present() does and a row trigger, both of which do nothing: the floor of presenting a token.
CREATE TRIGGER noop BEFORE INSERT OR UPDATE ON target FOR EACH ROW EXECUTE FUNCTION public.noop_row();
-- each
BEGIN;
SELECT public.noop_present(:resource, :token);
UPDATE target SET v = :v WHERE id = :id;
COMMIT;
