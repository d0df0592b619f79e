-- mark_is(), mark_cmp_ok()
SET client_min_messages = warning;
BEGIN;
CREATE EXTENSION IF NOT EXISTS lockfence_pgtap CASCADE;
SELECT plan(26);

SELECT * FROM check_test(mark_is('pgtap/marks', NULL), true, 'mark_is(none)',
	'Resource pgtap/marks should have no mark', '');
SELECT * FROM check_test(mark_is('pgtap/marks', 42), false, 'mark_is(none, wanted 42)',
	'The mark of resource pgtap/marks should be 42', E'        have: no mark\n        want: 42');
SELECT * FROM check_test(mark_cmp_ok('pgtap/marks', '>=', 42), false, 'mark_cmp_ok(none)',
	'The mark of resource pgtap/marks should be >= 42', E'    no mark\n        >=\n    42');
SELECT lockfence.present('pgtap/marks', 281474976710698);
SELECT * FROM check_test(mark_is('pgtap/marks', 281474976710698), true, 'mark_is(equal)',
	'The mark of resource pgtap/marks should be 281474976710698', '');
SELECT * FROM check_test(mark_is('pgtap/marks', NULL, 'untouched'), false, 'mark_is(none wanted)', 'untouched',
	E'        have: 281474976710698\n        want: no mark');
SELECT * FROM check_test(mark_cmp_ok('pgtap/marks', '>', 281474976710697), true, 'mark_cmp_ok(higher)',
	'The mark of resource pgtap/marks should be > 281474976710697', '');
SELECT * FROM check_test(mark_cmp_ok('pgtap/marks', '<>', 281474976710698, 'moved'), false, 'mark_cmp_ok(same)', 'moved',
	E'    281474976710698\n        <>\n    281474976710698');
SELECT * FROM check_test(mark_cmp_ok('pgtap/marks', '<=', 281474976710698), true, 'mark_cmp_ok(lower or equal)', NULL, '');
SELECT * FROM check_test(mark_cmp_ok('pgtap/marks', '=', 281474976710698), true, 'mark_cmp_ok(equal)', NULL, '');
SELECT throws_ok($$SELECT mark_cmp_ok('pgtap/marks', 'OR true OR', 1)$$, '22023');

SELECT * FROM finish();
ROLLBACK;
