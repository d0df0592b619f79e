-- refuses_stale(), refuses_missing(), accepts_token(), on fences that hold and on what is no fence
SET client_min_messages = warning;
BEGIN;
CREATE EXTENSION IF NOT EXISTS lockfence_pgtap CASCADE;
CREATE SCHEMA till;
SET LOCAL search_path = till, public;
CREATE TABLE batch (id bigint PRIMARY KEY, state text CHECK (state <> 'odd'));
CREATE TABLE account (id bigint PRIMARY KEY, balance numeric);
CREATE TABLE plain (id bigint PRIMARY KEY);
INSERT INTO batch VALUES (1, 'new');
INSERT INTO account VALUES (1, 0);
SELECT lockfence.attach('batch', 'till:{id}', token_column => 'fence'), lockfence.attach('account');
UPDATE account SET fence = 43;
PREPARE settle AS UPDATE batch SET state = 'done' WHERE id = 1;

CREATE TABLE kept (id bigint PRIMARY KEY, n integer);
INSERT INTO kept VALUES (1, 0);
SELECT lockfence.attach('kept', 'kept:{id}', accept => 'named');

SELECT plan(66);

SELECT * FROM check_test(refuses_stale('UPDATE batch SET state = ''x''', 'till:1', 42), true, 'refuses_stale(update)',
	'Stale token 42 should be refused for resource till:1', '');
SELECT * FROM check_test(refuses_stale('settle', 'till:1', 42, 'late'), true, 'refuses_stale(prepared)', 'late', '');
SELECT * FROM check_test(refuses_stale('UPDATE batch SET state = ''x'', fence = 42', 'till:1', 42), true,
	'refuses_stale(column)', NULL, '');
SELECT * FROM check_test(refuses_stale($$SELECT lockfence.guarded_delete('batch', '{"id": 1}', 42)$$, 'till:1', 42), true,
	'refuses_stale(guarded)', NULL, '');
SELECT * FROM check_test(refuses_stale('UPDATE account SET balance = 1', NULL, 42), true, 'refuses_stale(row fence)',
	'Stale token 42 should be refused', '');
SELECT * FROM check_test(refuses_stale('UPDATE account SET balance = 1', NULL, 43), false, 'refuses_stale(row fence, current)',
	NULL, 'caught: no exception', true);
SELECT * FROM check_test(refuses_stale('INSERT INTO plain VALUES (1)', 'till:1', 42), false, 'refuses_stale(plain)',
	'Stale token 42 should be refused for resource till:1',
	E'      caught: no exception\n      wanted: LF001\n    the statement wrote, or met no fence: see fence_is_intact() for its table');
SELECT * FROM check_test(refuses_stale('SELECT 1/0', 'till:1', 42), false, 'refuses_stale(another error)', NULL,
	E'      caught: 22012: division by zero\n      wanted: LF001\n    something else than the fence stopped the statement, so this says nothing about the fence');

-- a fence that takes named tokens only, under its own name and another
SELECT * FROM check_test(refuses_stale('UPDATE kept SET n = 1', 'kept:1', 42), true, 'refuses_stale(named)',
	'Stale token 42 should be refused for resource kept:1', '');
SELECT * FROM check_test(accepts_token('UPDATE kept SET n = 1', 'kept:1', 42), true, 'accepts_token(named)',
	'Token 42 should be accepted for resource kept:1', '');
SELECT * FROM check_test(refuses_stale('UPDATE kept SET n = 1', 'till:1', 42), false, 'refuses_stale(another name)',
	'Stale token 42 should be refused for resource till:1', 'caught: LF002: .*\n +wanted: LF001', true);

SELECT * FROM check_test(refuses_missing('UPDATE batch SET state = ''x'''), true, 'refuses_missing(update)',
	'A write without a token should be refused', '');
SELECT * FROM check_test(refuses_missing('DELETE FROM account', 'no token'), true, 'refuses_missing(row fence)', 'no token', '');
SELECT * FROM check_test(refuses_missing('INSERT INTO plain VALUES (1)'), false, 'refuses_missing(plain)', NULL,
	E'      caught: no exception\n      wanted: LF002\n    the statement wrote without a token, or met no fence: see fence_is_intact() for its table');
SELECT * FROM check_test(refuses_missing('UPDATE account SET fence = 1'), false, 'refuses_missing(stale)', NULL,
	'caught: LF001: .*\n +wanted: LF002', true);

SELECT * FROM check_test(accepts_token('settle', 'till:1', 44), true, 'accepts_token(prepared)',
	'Token 44 should be accepted for resource till:1', '');
SELECT * FROM check_test(accepts_token('UPDATE account SET balance = 2', NULL, 43, 'the same grant'), true,
	'accepts_token(row fence)', 'the same grant', '');
SELECT * FROM check_test(accepts_token('UPDATE account SET balance = 2', NULL, 42), false, 'accepts_token(row fence, stale)',
	'Token 42 should be accepted', 'caught: LF001: .*\n +wanted: no exception\n +the mark of the resource is in the row', true);
SELECT * FROM check_test(accepts_token('INSERT INTO plain VALUES (1)', 'till:1', 44), false, 'accepts_token(plain)', NULL,
	E'    the statement ran, but met no fence of resource till:1\n    see fence_is_intact() for its table, and the spelling of the resource');
SELECT * FROM check_test(accepts_token('UPDATE batch SET state = ''odd''', 'till:1', 44), false, 'accepts_token(check)', NULL,
	'caught: 23514: ', true);

-- a database that went back in time: nothing is accepted, and the diagnostics say why
UPDATE lockfence.state SET value = value + 1000 WHERE name LIKE 'timeline:%';
SELECT * FROM check_test(refuses_stale('settle', 'till:1', 42), false, 'refuses_stale(sealed)', NULL,
	'caught: LF005: the fence is sealed.*\n +wanted: LF001', true);
SELECT * FROM check_test(accepts_token('settle', 'till:1', 44), false, 'accepts_token(sealed)', NULL,
	'caught: LF005: the fence is sealed.*\n +wanted: no exception', true);
SELECT * FROM check_test(survives_zombie('batch', '{"id": 1}', '{"state": "done"}'), false, 'survives_zombie(sealed)', NULL,
	'the drill could not be played: LF005: the fence is sealed.*went from timeline', true);
UPDATE lockfence.state SET value = value - 1000 WHERE name LIKE 'timeline:%';

-- each is rolled back, so each stands for itself
SELECT results_eq('SELECT id, state FROM batch', $$VALUES (1::bigint, 'new')$$, 'No row was changed');
SELECT is_empty('SELECT FROM plain', 'no row was inserted');
SELECT mark_is('till:1', NULL, 'no mark was left');
SELECT is_empty('SELECT FROM lockfence.presented()', 'and no token is presented');

SELECT lockfence.present('till:1', 50);
SELECT * FROM check_test(refuses_missing('UPDATE batch SET state = ''x'''), false, 'refuses_missing(after present)', NULL,
	'    this transaction has presented a token, so the statement would not be without one: test in another');
SELECT * FROM check_test(accepts_token('settle', 'till:1', 49), false, 'accepts_token(stale)', NULL,
	'wanted: no exception', true);

SELECT * FROM finish();
ROLLBACK;
