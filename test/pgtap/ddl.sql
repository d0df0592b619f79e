-- ddl_is_fenced()
SET client_min_messages = warning;
BEGIN;
CREATE EXTENSION IF NOT EXISTS lockfence_pgtap CASCADE;
SELECT plan(14);

SELECT * FROM check_test(ddl_is_fenced(), false, 'ddl_is_fenced(not fenced)', 'DDL should be fenced',
	E'    DDL is not fenced\n    decide:   fence it by lockfence.fence_ddl(), with the resource that the lock of the migrations is named by');
SELECT lockfence.fence_ddl('migrations');
SELECT * FROM check_test(ddl_is_fenced(), true, 'ddl_is_fenced(any)', 'DDL should be fenced', '');
SELECT * FROM check_test(ddl_is_fenced('migrations'), true, 'ddl_is_fenced(resource)', 'DDL should be fenced by resource migrations', '');
SELECT * FROM check_test(ddl_is_fenced('other', 'named'), false, 'ddl_is_fenced(another resource)', 'named',
	E'        have: resource = migrations\n        want: resource = other');
ALTER EVENT TRIGGER lockfence_ddl_end DISABLE;
SELECT * FROM check_test(ddl_is_fenced('migrations'), false, 'ddl_is_fenced(disabled)', NULL,
	'    ddl_fence: .*\n +mend it:  ALTER EVENT TRIGGER lockfence_ddl_end ENABLE ALWAYS;', true);

SELECT * FROM finish();
ROLLBACK;
