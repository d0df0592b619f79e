-- A row trigger in C that does nothing: the floor of everything that is a row trigger.
CREATE TRIGGER noop BEFORE INSERT OR UPDATE ON target FOR EACH ROW EXECUTE FUNCTION public.noop_row();
-- each
UPDATE target SET v = :v WHERE id = :id;
