-- lock_table_issues()
SET client_min_messages = warning;
BEGIN;
CREATE EXTENSION IF NOT EXISTS lockfence_pgtap CASCADE;
CREATE SCHEMA locks;
CREATE TABLE locks.lock (name text PRIMARY KEY, owner text);
CREATE TABLE locks.plain (name text);
SELECT plan(19);

-- the extension that has issuers may not be there
SELECT * FROM check_test(lock_table_issues('locks.plain'), false, 'lock_table_issues(without lockfence_lease)', NULL,
	E'    table locks.plain issues no tokens\n    decide:   declare it by lockfence.issue_from(), of the extension lockfence_lease');
CREATE EXTENSION lockfence_lease;
SELECT lockfence.issue_from('locks.lock', 'lock:{name}', '{owner}', '{owner}');

SELECT * FROM check_test(lock_table_issues('locks.lock'), true, 'lock_table_issues(any)',
	'Lock table locks.lock should issue tokens', '');
SELECT * FROM check_test(lock_table_issues('locks.lock', 'lock:{name}'), true, 'lock_table_issues(resource)',
	'Lock table locks.lock should issue tokens of resource lock:{name}', '');
SELECT * FROM check_test(lock_table_issues('locks.lock', '{name}', 'named'), false, 'lock_table_issues(another resource)', 'named',
	E'        have: resource = lock:{name}\n        want: resource = {name}');
SELECT * FROM check_test(lock_table_issues('locks.plain'), false, 'lock_table_issues(plain)', NULL,
	E'    table locks.plain issues no tokens\n    decide:   declare it by lockfence.issue_from(), of the extension lockfence_lease');
SELECT * FROM check_test(lock_table_issues('locks.absent'), false, 'lock_table_issues(absent)', NULL, '    table locks.absent does not exist');
ALTER TABLE locks.lock ENABLE TRIGGER "~lockfence_issue";
SELECT * FROM check_test(lock_table_issues('locks.lock'), false, 'lock_table_issues(not always)', NULL,
	'error: issuer_not_always: .*\n +mend it:  ALTER TABLE ONLY locks.lock ENABLE ALWAYS TRIGGER "~lockfence_issue";', true);
ALTER TABLE locks.lock ENABLE ALWAYS TRIGGER "~lockfence_issue";
DROP TRIGGER "~lockfence_issue" ON locks.lock;
SELECT * FROM check_test(lock_table_issues('locks.lock', 'lock:{name}'), false, 'lock_table_issues(dropped)', NULL,
	E'    table locks.lock issues no tokens\n    decide:   declare it by lockfence.issue_from(), of the extension lockfence_lease');

SELECT * FROM finish();
ROLLBACK;
