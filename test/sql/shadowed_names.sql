-- A temporary object, which any role may make, changes no value's text and so no resource's name.
-- Hole: the text form of a regtype or regclass is qualified where a temporary object hides what it
-- names, and the mark was then looked for under another name.
\set VERBOSITY sqlstate
CREATE TABLE shadowed (kind regtype PRIMARY KEY, place regclass, note text);
INSERT INTO shadowed VALUES ('uuid', 'pg_am', 'new');
SELECT lockfence.attach('shadowed', 'shadowed:{kind}/{place}');
SELECT lockfence.present('shadowed:uuid/pg_am', 10);

CREATE TEMPORARY TABLE uuid ();
CREATE TEMPORARY TABLE pg_am ();
BEGIN;
SELECT lockfence.present(9);
UPDATE shadowed SET note = 'stale';
ROLLBACK;
SELECT lockfence.resource_of('shadowed', s) FROM shadowed s;
SET search_path = pg_temp, public, pg_catalog;
SELECT lockfence.resource_of('shadowed', s) FROM shadowed s;
RESET search_path;

DROP TABLE shadowed, pg_temp.uuid, pg_temp.pg_am;
