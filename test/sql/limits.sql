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

CREATE SCHEMA test_limits;
SET search_path = test_limits, public;
CREATE TABLE t (id int PRIMARY KEY, fence lockfence.fence_token, list int[]);
SELECT lockfence.attach('t', repeat('{id}', 257), 'fence');
SELECT lockfence.attach('t', 't-{id}', 'fence');

-- A nested array is read to the depth that the stack has room for, and no further.
CREATE TABLE nested AS SELECT ('{"list": ' || repeat('[', 3000) || repeat(']', 3000) || '}')::jsonb AS changes;
\set VERBOSITY sqlstate
SET max_stack_depth = '100kB';
SELECT lockfence.guarded_update('t', '{"id": 1}', changes, 1) FROM nested;
RESET max_stack_depth;

DROP SCHEMA test_limits CASCADE;
