-- has_fence(), hasnt_fence(), fence_is(), fence_settings_are(), fences_are()
SET client_min_messages = warning;
BEGIN;
CREATE EXTENSION IF NOT EXISTS lockfence_pgtap CASCADE;
CREATE SCHEMA shop;
CREATE TABLE shop.plain (id bigint PRIMARY KEY);
CREATE TABLE shop.account (id bigint PRIMARY KEY);
CREATE TABLE shop.batch (id bigint PRIMARY KEY, state text);
CREATE TABLE shop.ledger (id bigint PRIMARY KEY, day date) PARTITION BY HASH (id);
CREATE TABLE shop.ledger_0 PARTITION OF shop.ledger FOR VALUES WITH (MODULUS 1, REMAINDER 0);
SELECT lockfence.attach('shop.account'),
	lockfence.attach('shop.batch', 'settle:batch-{id}', enforcement => 'advisory'),
	lockfence.attach('shop.ledger', 'jobs/nightly');

SELECT plan(59);

SELECT * FROM check_test(has_fence('shop.batch'), true, 'has_fence(fenced)',
	'Table shop.batch should have a fence', '');
SELECT * FROM check_test(has_fence('shop.ledger_0', 'the leaf is fenced'), true, 'has_fence(leaf, description)',
	'the leaf is fenced', '');
SELECT * FROM check_test(has_fence('shop.plain'), false, 'has_fence(plain)',
	'Table shop.plain should have a fence',
	E'    table shop.plain has no fence\n    decide:   fence it by lockfence.attach(), with the resource that its lock is named by');
SELECT * FROM check_test(has_fence('shop.absent'), false, 'has_fence(absent)',
	'Table shop.absent should have a fence', '    table shop.absent does not exist');

SELECT * FROM check_test(hasnt_fence('shop.plain'), true, 'hasnt_fence(plain)',
	'Table shop.plain should not have a fence', '');
SELECT * FROM check_test(hasnt_fence('shop.batch', 'unfenced'), false, 'hasnt_fence(fenced)', 'unfenced',
	E'    it has a template fence of resource settle:batch-{id}\n    take it off:  SELECT lockfence.detach(''shop.batch'');');
SELECT * FROM check_test(hasnt_fence('shop.account'), false, 'hasnt_fence(row fence)',
	'Table shop.account should not have a fence',
	E'    it has a row fence\n    take it off:  SELECT lockfence.detach(''shop.account'');');

SELECT * FROM check_test(fence_is('shop.ledger', 'jobs/nightly'), true, 'fence_is(constant)',
	'Table shop.ledger should be fenced by resource jobs/nightly', '');
SELECT * FROM check_test(fence_is('shop.account', NULL), true, 'fence_is(row)',
	'Table shop.account should have a row fence, fenced', '');
SELECT * FROM check_test(fence_is('shop.batch', 'settle:batch-{id}', 'advisory', 'roll-out'), true,
	'fence_is(advisory)', 'roll-out', '');
SELECT * FROM check_test(fence_is('shop.batch', 'settle:batch-{id}'), false, 'fence_is(advisory, wanted fenced)',
	'Table shop.batch should be fenced by resource settle:batch-{id}',
	E'        have: enforcement = advisory\n        want: enforcement = fenced\n    decide:   declare the fence anew, by lockfence.detach() and lockfence.attach() in one transaction');
SELECT * FROM check_test(fence_is('shop.ledger', 'jobs/hourly'), false, 'fence_is(other resource)',
	'Table shop.ledger should be fenced by resource jobs/hourly',
	'have: resource = jobs/nightly\n +want: resource = jobs/hourly', true);
SELECT * FROM check_test(fence_is('shop.plain', 'x'), false, 'fence_is(plain)',
	'Table shop.plain should be fenced by resource x', 'table shop.plain has no fence', true);

SELECT * FROM check_test(fence_settings_are('shop.account', '{"kind": "row", "token_column": "fence"}'), true,
	'fence_settings_are(row)', 'Table shop.account should be fenced as declared', '');
SELECT * FROM check_test(fence_settings_are('shop.account', '{"accept": "presented", "missing": "reject"}', 'for an ORM'),
	false, 'fence_settings_are(accept)', 'for an ORM', 'have: accept = any\n +want: accept = presented\n +decide', true);

SELECT * FROM check_test(fences_are('shop', ARRAY['account', 'batch', 'ledger']), true, 'fences_are(all)',
	'Schema shop should have the right fenced tables', '');
SELECT * FROM check_test(fences_are('shop', ARRAY['account', 'ledger', 'payout', 'plain'], 'all money'), false,
	'fences_are(others)', 'all money',
	E'    Extra fenced tables:\n        batch\n    Missing fences:\n        payout\n        plain\n    decide:   fence each by lockfence.attach()');

-- a migration took it away
SELECT lockfence.detach('shop.account');
SELECT * FROM check_test(has_fence('shop.account'), false, 'has_fence(detached)',
	'Table shop.account should have a fence', 'it has a token column, "fence", so it may have had one', true);
SELECT * FROM check_test(fences_are('shop', ARRAY['account', 'batch', 'ledger']), false, 'fences_are(detached)',
	'Schema shop should have the right fenced tables', E'    Missing fences:\n        account\n    decide:   fence each by lockfence.attach()');
SELECT lockfence.attach('shop.account');
SELECT has_fence('shop.account');
SELECT fence_is('shop.account', NULL);

SELECT * FROM finish();
ROLLBACK;
