-- The token: made, split, read from text; never through a float.
\set SHOW_CONTEXT never

-- 2^53 + 1, the first integer that a float8 cannot hold: it keeps its last digit.
SELECT lockfence.make_token(32, 1), lockfence.make_token(32, 1) = 9007199254740993 AS exact;
SELECT lockfence.token_epoch(9007199254740993), lockfence.token_revision(9007199254740993);

-- 2^63 - 1, the highest token.
SELECT lockfence.make_token(32767, 281474976710655);
SELECT lockfence.token_epoch(9223372036854775807), lockfence.token_revision(9223372036854775807);

-- The lowest of each part.
SELECT lockfence.make_token(0, 1), lockfence.make_token(1, 0);
SELECT lockfence.token_epoch(1), lockfence.token_revision(1);
SELECT lockfence.token_epoch(281474976710656), lockfence.token_revision(281474976710656);
SELECT lockfence.token_epoch(281474976710655), lockfence.token_revision(281474976710655);

-- Made and split again, every token comes back.
SELECT bool_and(lockfence.make_token(lockfence.token_epoch(t), lockfence.token_revision(t)) = t) AS same
FROM (SELECT (9223372036854775807 >> n) AS t FROM generate_series(0, 62) n) tokens;
-- Their order is the order of (epoch, revision).
SELECT lockfence.make_token(1, 281474976710655) < lockfence.make_token(2, 0) AS epoch_first;

-- Out of range: an error each, LF003.
SELECT lockfence.make_token(32768, 1);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.make_token(-1, 1);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.make_token(1, 281474976710656);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.make_token(1, -1);
SELECT lockfence.make_token(0, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.make_token(NULL, 1);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.make_token(1, NULL);

-- What is no token has no parts; null has none either.
SELECT lockfence.token_epoch(0);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.token_revision(-1);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.token_epoch(-9223372036854775808);
SELECT lockfence.token_epoch(NULL) IS NULL AS epoch, lockfence.token_revision(NULL) IS NULL AS revision;

-- Text is read as a bigint, with all its digits.
SELECT '9007199254740993'::lockfence.fence_token;
SELECT lockfence.token_revision('9007199254740993');
SELECT ' 42 '::lockfence.fence_token;

-- An unsigned 64-bit maximum overflows: an error, no other number.
SELECT '18446744073709551615'::lockfence.fence_token;
\echo :LAST_ERROR_SQLSTATE
SELECT '9223372036854775808'::lockfence.fence_token;
SELECT 18446744073709551615::lockfence.fence_token;
SELECT '1e15'::lockfence.fence_token;
SELECT ''::lockfence.fence_token;
SELECT 'token'::lockfence.fence_token;

-- In JSON a token is a string; a JSON number has to keep its digits as well.
SELECT ('{"token": "9007199254740993"}'::jsonb ->> 'token')::lockfence.fence_token;
SELECT ('{"token": 9007199254740993}'::jsonb ->> 'token')::lockfence.fence_token;

-- Whatever takes a token refuses what is none, first of all null (a NOT NULL domain would let null pass
-- through an empty subquery).
SELECT lockfence.present(NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present(0);
SELECT lockfence.present(-1);
SELECT lockfence.present((SELECT 1::lockfence.fence_token WHERE false));
SELECT lockfence.present('token:a', NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present('token:a', 0);
SELECT lockfence.present('token:a', -5);
SELECT lockfence.present('token:a', -9223372036854775808);
SELECT lockfence.present('token:a', (SELECT 1::lockfence.fence_token WHERE false));
SELECT lockfence.is_current('token:a', 0);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.is_current('token:a', NULL);
-- Nothing of it left a mark.
SELECT count(*) FROM lockfence.mark WHERE resource = 'token:a';

-- Tokens above 2^53 that differ by one are two tokens, to a mark as well.
SELECT lockfence.present('token:a', 9007199254740993);
SELECT lockfence.present('token:a', 9007199254740992);
\echo :LAST_ERROR_SQLSTATE
SELECT lockfence.present('token:a', '9007199254740994');
SELECT resource, token FROM lockfence.mark WHERE resource = 'token:a';

-- The functions are immutable, for use in indexes and constraints.
SELECT proname, provolatile, proparallel FROM pg_proc
WHERE pronamespace = 'lockfence'::regnamespace AND proname IN ('make_token', 'token_epoch', 'token_revision')
ORDER BY proname;
-- The domain has no constraint: adding a column of it would rewrite the table.
SELECT count(*) FROM pg_constraint WHERE contypid = 'lockfence.fence_token'::regtype;
