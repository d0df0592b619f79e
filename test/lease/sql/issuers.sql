-- issue_from(), stop_issuing(): what they take, what they refuse, and what verify() finds of it.
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA issuers;
SET search_path = issuers;
CREATE VIEW grants AS SELECT resource, owner, token FROM lockfence.leases WHERE resource ~ '^i/' ORDER BY resource COLLATE "C";
CREATE FUNCTION findings(target regclass) RETURNS TABLE (severity text, code text, problem text, remedy text, advice text) LANGUAGE sql
AS $$SELECT severity, code, problem, remedy, advice FROM lockfence.verify($1) v WHERE v.target = $1$$;

-- ---- what is refused

CREATE TABLE lock (name text PRIMARY KEY, owner text, until timestamptz, held boolean, lower_name text GENERATED ALWAYS AS (lower(name)) STORED);
SELECT lockfence.issue_from(NULL, 'x', 'y');
SELECT lockfence.issue_from('lock');
SELECT lockfence.issue_from('lock', 'i/{name}');
SELECT lockfence.issue_from('lock', '', '{owner}');
SELECT lockfence.issue_from('lock', 'i/{nome}', '{owner}');
SELECT lockfence.issue_from('lock', 'i/{name', '{owner}');
SELECT lockfence.issue_from('lock', 'i/{lower_name}', '{owner}');
SELECT lockfence.issue_from('lock', 'i/{name}', '{owner}', '{ower}');
\set VERBOSITY terse
SELECT lockfence.issue_from('lock', 'i/{name}', '{owner}', held => 'NEW.owner');
SELECT lockfence.issue_from('lock', 'i/{name}', '{owner}', held => 'NEW.held) EXECUTE FUNCTION lockfence.issue_row() --');
\set VERBOSITY default
SELECT lockfence.issue_from('lock', 'i/{name}', '{owner}', wait => '0');
SELECT lockfence.issue_from('lock', 'i/{name}', '{owner}', wait => '2 hours');
SELECT lockfence.issue_from('lock', preset => 'shedlok');
SELECT lockfence.issue_from('lock', preset => 'shedlock');
-- a preset's owner names a grant only where the resource names its row
CREATE FUNCTION needs_owner(preset text, resource text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM lockfence._check_preset_owner(preset, resource);
	RETURN false;
EXCEPTION WHEN invalid_parameter_value THEN
	RETURN true;
END$$;
SELECT name, needs_owner(name, 'i/shared') AS shared, needs_owner(name, 'i/' || resource) AS of_the_row
FROM lockfence._issuer_presets() ORDER BY name COLLATE "C";
CREATE VIEW view AS SELECT 1;
SELECT lockfence.issue_from('view', 'i/x', 'y');
SELECT lockfence.issue_from('pg_class', 'i/x', 'y');
SELECT lockfence.issue_from('lockfence.mark', 'i/x', 'y');
CREATE TEMP TABLE temp (name text);
SELECT lockfence.issue_from('temp', 'i/x', 'y');
CREATE TABLE parent (name text);
CREATE TABLE child () INHERITS (parent);
SELECT lockfence.issue_from('parent', 'i/x', 'y');
SELECT lockfence.stop_issuing('lock');
SELECT count(*) FROM lockfence.issuers WHERE target = 'lock'::regclass;

-- ---- settings

SELECT lockfence.issue_from('lock', 'i/{name}', '{owner}', '{owner, until}', E'NEW.held -- as its owner says', '20ms');
SELECT * FROM lockfence.issuers WHERE target = 'lock'::regclass;
SELECT lockfence.issue_from('lock', 'i/{name}', '{owner}');
INSERT INTO lock VALUES ('a', 'x', now(), false);
SELECT count(*) FROM grants;
UPDATE lock SET held = true;
UPDATE lock SET owner = owner;
TABLE grants;
UPDATE lock SET until = NULL, owner = NULL;
TABLE grants;
-- no owner is told its token; it is a grant like another, also for those who ask for a lease
SELECT alive FROM lockfence.leases WHERE resource = 'i/a';
SELECT * FROM lockfence.acquire('i/a', 'x', '1 hour');
-- ... above the last grant on record, though the mark was lowered
SELECT lockfence.reset_mark('i/a', 1, 'lowered') > 1 AS lowered;
UPDATE lock SET owner = 'y';
TABLE grants;
-- a row that names no resource is no lock; one whose name is too long is an error
CREATE TABLE optional (key text, owner text);
SELECT lockfence.issue_from('optional', 'i/optional/{key}', '{owner}');
INSERT INTO optional VALUES (NULL, 'x'), ('1', 'x');
INSERT INTO optional VALUES ('', repeat('x', 2000));
INSERT INTO optional VALUES (repeat('x', 2000), 'x');
SELECT * FROM grants WHERE resource ~ 'optional';
-- names of all kinds
CREATE TABLE "Lock""s {" ("Name}" text PRIMARY KEY, "it's" text);
SELECT lockfence.issue_from('"Lock""s {"', $$i/{{it's}}$$, $${it's}$$, $${"it's"}$$);
INSERT INTO "Lock""s {" VALUES ('a', $$o'owner$$);
UPDATE "Lock""s {" SET "it's" = 'b';
SELECT * FROM grants WHERE resource ~ 'it';
SELECT lockfence.stop_issuing('"Lock""s {"');
UPDATE "Lock""s {" SET "it's" = 'c';
SELECT * FROM grants WHERE resource ~ 'it';
-- text that depends on settings does not
CREATE TABLE times (at timestamptz, owner bytea);
SELECT lockfence.issue_from('times', 'i/{at}', '{owner}');
SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German'; SET bytea_output = 'escape';
INSERT INTO times VALUES ('2026-01-01 00:00:00+00', '\x00ff');
RESET TimeZone; RESET DateStyle; RESET bytea_output;
SELECT * FROM grants WHERE resource ~ '2026';

-- ---- transactions

BEGIN;
UPDATE lock SET owner = 'rolled back';
SELECT token - (SELECT token FROM grants WHERE resource = 'i/a') FROM lockfence.presented() WHERE resource = 'i/a';
ROLLBACK;
BEGIN;
SAVEPOINT s;
UPDATE lock SET owner = 'y', held = true;
ROLLBACK TO s;
UPDATE lock SET owner = 'z', held = true;
COMMIT;
SELECT * FROM grants WHERE resource = 'i/a';
-- granted twice in one transaction, and in one statement: the last one counts
BEGIN;
UPDATE lock SET owner = 'z';
UPDATE lock SET owner = 'y';
COMMIT;
SELECT * FROM grants WHERE resource = 'i/a';
CREATE TABLE one (id int, owner text);
SELECT lockfence.issue_from('one', 'i/one', '{id}:{owner}');
INSERT INTO one SELECT i, 'x' FROM generate_series(1, 3) i;
SELECT * FROM grants WHERE resource = 'i/one';
-- the grant's own writes to what is fenced need no token of theirs
CREATE TABLE fenced (id int PRIMARY KEY, note text);
SELECT lockfence.attach('fenced', 'i/one');
BEGIN;
INSERT INTO one VALUES (4, 'x');
INSERT INTO fenced VALUES (1, 'by 4');
COMMIT;
INSERT INTO fenced VALUES (2, 'without a token');
SELECT lockfence.present('i/one', 3);
-- the owner of the last grant is told its token, and no other
SELECT lockfence.token_of('i/one', '4:x');
SELECT lockfence.token_of('i/one', '3:x');
BEGIN;
SELECT lockfence.present_as('i/one', '4:x');
INSERT INTO fenced VALUES (3, 'by 4');
COMMIT;
SELECT lockfence.present_as('i/one', '3:x');
-- one that has no name, none
SELECT lockfence.token_of('i/optional/', '');
-- what is old is pruned where its mark is
BEGIN;
SELECT lockfence.prune_leases('0') >= 0;
SELECT count(*) FROM grants WHERE resource = 'i/one';
SELECT lockfence.prune('0') > 0;
SELECT lockfence.prune_leases('0') > 0;
SELECT count(*) FROM grants;
ROLLBACK;
-- whatever session_replication_role is
SET session_replication_role = replica;
INSERT INTO one VALUES (5, 'x');
RESET session_replication_role;
SELECT * FROM grants WHERE resource = 'i/one';
-- a session's own limit is kept, and put back; names that no fence makes are not told about
SET lock_timeout = '7s';
SET lockfence.unknown_resource = 'warning';
INSERT INTO optional VALUES ('2', 'x');
SHOW lock_timeout;
SHOW lockfence.unknown_resource;
RESET lock_timeout;
SET lockfence.unknown_resource = 'ignore';

-- ---- a table that inherits from a lock table, whose rows the trigger does not see

CREATE TABLE heir () INHERITS (lock);
SELECT severity, code, problem, advice FROM findings('lock') WHERE code = 'issuer_children';
DROP TABLE heir;
SELECT code FROM findings('lock');

-- ---- a fence on a lock table

SELECT lockfence.attach('lock', 'i/{name}');
SELECT code, problem, advice FROM findings('lock') WHERE code = 'issuer_fenced';
SELECT lockfence.detach('lock');
SELECT lockfence.attach('optional', 'i/x');
SELECT lockfence.stop_issuing('optional');
SELECT lockfence.issue_from('optional', 'i/{key}', 'x');
SELECT lockfence.detach('optional');

-- ---- verify()

SELECT * FROM findings('lock');
ALTER TABLE lock DISABLE TRIGGER "~lockfence_issue";
SELECT * FROM findings('lock');
ALTER TABLE lock ENABLE REPLICA TRIGGER "~lockfence_issue";
SELECT * FROM findings('lock');
ALTER TABLE lock ENABLE TRIGGER "~lockfence_issue";
SELECT * FROM findings('lock');
SELECT remedy FROM findings('lock') \gexec
SELECT * FROM findings('lock');
-- other names change nothing
ALTER TRIGGER "~lockfence_issue" ON lock RENAME TO zz;
ALTER TABLE lock RENAME TO locks;
SELECT * FROM findings('locks');
ALTER TABLE locks RENAME TO lock;
ALTER TABLE lock RENAME COLUMN name TO title;
SELECT * FROM findings('lock');
UPDATE lock SET owner = 'q';
ALTER TABLE lock RENAME COLUMN title TO name;
-- a trigger of the same name that is another
DROP TRIGGER zz ON lock;
SELECT * FROM findings('lock');
CREATE TRIGGER zz AFTER INSERT OR UPDATE OF owner, until ON lock FOR EACH ROW WHEN (false)
EXECUTE FUNCTION lockfence.issue_row('resource=i/{name}', 'owner={owner}', 'wait=20');
SELECT code, problem, remedy, advice FROM findings('lock');
SELECT lockfence.stop_issuing('lock');
SELECT * FROM findings('lock');
CREATE TRIGGER zz AFTER INSERT ON lock FOR EACH ROW EXECUTE FUNCTION lockfence.issue_row('resource=i/{name}', 'owner={owner}', 'wait=20');
ALTER TABLE lock ENABLE ALWAYS TRIGGER zz;
SELECT code, problem, remedy, advice FROM findings('lock');
DROP TRIGGER zz ON lock;
-- what no issue_from() makes
CREATE TRIGGER zz BEFORE INSERT ON lock FOR EACH ROW EXECUTE FUNCTION lockfence.issue_row('resource=i/{name}', 'owner={owner}', 'wait=20');
INSERT INTO lock VALUES ('b');
DROP TRIGGER zz ON lock;
CREATE TRIGGER zz AFTER INSERT ON lock FOR EACH ROW EXECUTE FUNCTION lockfence.issue_row('resource=i/{name}');
INSERT INTO lock VALUES ('b');
DROP TRIGGER zz ON lock;
SELECT lockfence.issue_row();

-- ---- partitions

CREATE TABLE parted (name text, owner text) PARTITION BY LIST (name);
CREATE TABLE parted_a (gone int, owner text, name text);
ALTER TABLE parted_a DROP COLUMN gone;
ALTER TABLE parted ATTACH PARTITION parted_a FOR VALUES IN ('a');
SELECT lockfence.issue_from('parted', 'i/parted/{name}', '{owner}', '{owner}');
CREATE TABLE parted_b PARTITION OF parted FOR VALUES IN ('b');
INSERT INTO parted VALUES ('a', 'x'), ('b', 'y');
UPDATE parted_a SET owner = 'z';
SELECT * FROM grants WHERE resource ~ 'parted';
SELECT lockfence.stop_issuing('parted_a');
SELECT lockfence.issue_from('parted_a', 'i/parted/{name}', '{owner}', '{owner}');
ALTER TABLE parted_b DISABLE TRIGGER ALL;
SELECT v.target, code, remedy FROM lockfence.verify('parted') v WHERE code ~ 'issuer';
SELECT count(*) FROM lockfence.issuers WHERE target::text ~ 'parted';
SELECT lockfence.stop_issuing('parted');
SELECT count(*) FROM pg_trigger WHERE tgfoid = 'lockfence.issue_row()'::regprocedure AND tgrelid::regclass::text ~ 'parted';

-- ---- a publication of all tables, under which a change without a replica identity is an error

BEGIN;
SET LOCAL client_min_messages = error;
CREATE PUBLICATION everything FOR ALL TABLES;
CREATE TABLE published (name text PRIMARY KEY);
SELECT lockfence.issue_from('published', 'i/published', 'x');
SELECT lockfence.stop_issuing('published');
ROLLBACK;

-- ---- roles

CREATE ROLE regress_lf_writer;
GRANT USAGE ON SCHEMA issuers TO regress_lf_writer;
GRANT INSERT, UPDATE, SELECT ON one TO regress_lf_writer;
CREATE ROLE regress_lf_owner;
GRANT USAGE, CREATE ON SCHEMA issuers TO regress_lf_owner;
SET ROLE regress_lf_writer;
INSERT INTO one VALUES (6, 'writer');
SELECT lockfence.issue_from('one', 'i/one', 'x');
SELECT lockfence.stop_issuing('one');
SELECT count(*) FROM lockfence.issuers WHERE target = 'one'::regclass;
SET ROLE regress_lf_owner;
CREATE TABLE own (name text);
CREATE TRIGGER t AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION lockfence.issue_row('resource=i/one', 'owner=x', 'wait=1');
RESET ROLE;
SELECT owner FROM grants WHERE resource = 'i/one';
-- for a role that is to declare issuers on tables of its own
GRANT EXECUTE ON FUNCTION lockfence.issue_from(regclass, text, text, name[], text, interval, text), lockfence.stop_issuing(regclass),
	lockfence.issue_row(), lockfence._record_issuer(regclass) TO regress_lf_owner;
SELECT code, problem FROM lockfence.verify() WHERE problem ~ 'regress_lf_owner|PUBLIC';
BEGIN;
REVOKE EXECUTE ON FUNCTION lockfence.issue_from(regclass, text, text, name[], text, interval, text) FROM regress_lf_owner;
GRANT EXECUTE ON FUNCTION lockfence.issue_from(regclass, text, text, name[], text, interval, text) TO PUBLIC;
SELECT code, problem FROM lockfence.verify() WHERE problem ~ 'regress_lf_owner|PUBLIC';
ROLLBACK;
SET ROLE regress_lf_owner;
SELECT lockfence.issue_from('own', 'i/own/{name}', 'x');
INSERT INTO own VALUES ('1');
SELECT lockfence.issue_from('lock', 'i/{name}', 'x');
SELECT lockfence.stop_issuing('one');
SELECT lockfence.stop_issuing('own');
-- a literal in a condition is read by the rules of the owner of its type: not with another role's rights
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE TABLE slots (name text, "slots
" positive[]);
SELECT lockfence.issue_from('slots', 'i/slots', 'x', held => $$NEW."slots
" = '{1,2}'$$);
SELECT held FROM lockfence.issuers WHERE target = 'slots'::regclass;
SELECT lockfence.stop_issuing('slots');
RESET ROLE;
SELECT lockfence.issue_from('slots', 'i/slots', 'x', held => 'NEW.name IS NOT NULL');
SELECT lockfence.issue_from('slots', 'i/slots', 'x');
DROP TABLE slots;
-- what is on record of the tables of others is not changed with that
CREATE TABLE lost (name text);
SELECT lockfence.issue_from('lost', 'i/{name}', 'x');
DROP TRIGGER "~lockfence_issue" ON lost;
SET ROLE regress_lf_owner;
SELECT lockfence.stop_issuing('lost');
SELECT lockfence._record_issuer('lost');
RESET ROLE;
SELECT code FROM findings('lost');
SELECT * FROM grants WHERE resource ~ 'own';

DROP SCHEMA issuers CASCADE;
DROP OWNED BY regress_lf_owner, regress_lf_writer;
DROP ROLE regress_lf_owner, regress_lf_writer;
SELECT v.target, code, problem FROM lockfence.verify() v WHERE code ~ 'issuer';
DELETE FROM lockfence.lease WHERE expires_at IS NULL;
