-- Inputs of any size end soon, and in an error of their own.
\set VERBOSITY terse
\set ON_ERROR_STOP off
SET client_min_messages = warning;
SELECT cardinality(lockfence.template_columns(repeat('{a}', 341)));
SELECT lockfence.template_columns(repeat('{a}', 342));
-- 2.9 GB and two minutes, if it were taken apart first
SELECT lockfence.template_columns(repeat('{a}', 2500000));
SELECT length(resource) FROM lockfence.fence_settings(convert_to('resource=' || repeat('x', 1024), 'UTF8'));
SELECT accept FROM lockfence.fence_settings(decode(repeat('6163636570743d616e7900', 700), 'hex'));
SELECT accept FROM lockfence.fence_settings(decode(repeat('6163636570743d616e7900', 1000000), 'hex'));

-- Arguments as a trigger has them: whole, as many as it says, text, and no longer than a guard's.
SELECT lockfence._argument_list('\x613d620062003d00', 3);
SELECT lockfence._argument_list('', 0);
SELECT lockfence._argument_list('\x613d620062', 2) IS NULL AS cut, lockfence._argument_list('\x613d620062003d00', 2) IS NULL AS miscounted,
	lockfence._argument_list('\xff00', 1) IS NULL AS no_text, cardinality(lockfence._argument_list(decode(repeat('6100', 4096), 'hex'), 4096)),
	lockfence._argument_list(decode(repeat('6100', 4097), 'hex'), 4097) IS NULL AS long;
-- The last one of a setting counts, and the first fault is told.
SELECT * FROM lockfence._declared(ARRAY['resource=a', 'accept=presented', 'resource=b={c}', 'accept=any', 'missing=allow']);
SELECT resource, missing, advisory_since, settings, fault FROM lockfence._declared(ARRAY['resource={', 'missing=', 'missing=allow', 'advisory_since=soon', NULL]);
SELECT fault FROM lockfence._declared(NULL);
SELECT fault FROM lockfence._declared('{}');
SELECT fault FROM lockfence._declared('{token_column=t,missing=allow,repeat=reject}');
-- What is written is what was read, in one order.
SELECT lockfence._arguments(d.settings) FROM lockfence._declared(ARRAY['validator=f(text,int8)', 'repeat=reject', 'advisory_since=2026-11-30', 'accept=presented', 'enforcement=advisory', 'token_column=t', 'resource=a=b']) d;
SELECT lockfence._arguments('{"resource": null, "accept": "any", "missing": "allow", "colour": "red"}');
SELECT lockfence._arguments('{"repeat": null}');

CREATE SCHEMA test_limits;
SET search_path = test_limits, public;
CREATE TABLE t (id int PRIMARY KEY, fence lockfence.fence_token, list int[]);
SELECT lockfence.attach('t', repeat('{id}', 257), 'fence');
SELECT lockfence.attach('t', 't-{id}', 'fence');

-- A nested array is read to the depth that the stack allows, and no further.
CREATE TABLE nested AS SELECT ('{"list": ' || repeat('[', 3000) || repeat(']', 3000) || '}')::jsonb AS changes;
\set VERBOSITY sqlstate
SET max_stack_depth = '100kB';
SELECT lockfence.guarded_update('t', '{"id": 1}', changes, 1) FROM nested;
RESET max_stack_depth;

\set VERBOSITY terse

-- What verify() and detach() look at ends soon too: 2^40 paths from table to table, arguments that no guard takes.
DO $$
BEGIN
	CREATE TABLE lattice_0_0 (id int, fence lockfence.fence_token);
	CREATE TABLE lattice_0_1 (id int, fence lockfence.fence_token);
	FOR i IN 1..40 LOOP
		FOR j IN 0..1 LOOP
			EXECUTE format('CREATE TABLE lattice_%s_%s () INHERITS (lattice_%s_0, lattice_%3$s_1)', i, j, i - 1);
		END LOOP;
	END LOOP;
	CREATE TABLE wordy (id int);
	EXECUTE format('CREATE TRIGGER "~lockfence_row" BEFORE INSERT OR UPDATE OR DELETE ON wordy FOR EACH ROW'
		' EXECUTE FUNCTION lockfence.guard_row(%L)', 'resource=' || repeat('{id}', 2100));
END
$$;
SET statement_timeout = '60s';
SELECT lockfence.attach('lattice_0_0', 'lattice:{id}', 'fence');
SELECT target, code FROM lockfence.verify() WHERE code = 'unfenced_parent' OR target = 'lattice_0_1'::regclass;
SELECT problem FROM lockfence.verify() WHERE code = 'guard_altered' AND target = 'wordy'::regclass;
SELECT lockfence._is_named('1111');
SELECT lockfence.detach('lattice_0_0');
RESET statement_timeout;

DROP SCHEMA test_limits CASCADE;
