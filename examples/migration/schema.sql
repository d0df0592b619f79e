-- A shop's prices, and the versions of its schema, as migration tools keep them.
CREATE TABLE price (item text PRIMARY KEY, amount numeric NOT NULL);
INSERT INTO price VALUES ('bread', 3.20), ('milk', 1.15);
CREATE TABLE schema_version (version integer NOT NULL, description text NOT NULL, installed_on timestamptz NOT NULL DEFAULT now());
INSERT INTO schema_version VALUES (1, 'prices');
