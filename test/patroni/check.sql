-- Checks a stream of writes: the answers that the writers got (:'attempts') against the rows and marks.
-- Prints one line per finding, the first five of each kind.
SET search_path = :"stream";
SET client_min_messages = error;
CREATE TEMP TABLE attempt (id text PRIMARY KEY, name text, token bigint, began bigint, ended bigint, outcome text);
\set copy '\\copy attempt FROM ' :'attempts'
:copy

-- What has happened, and when the writer knew.
CREATE TEMP VIEW event AS
SELECT name, ended AS at, 0 AS is_beginning, token AS known, NULL::bigint AS token, id FROM attempt WHERE outcome = 'ok'
UNION ALL
SELECT t.name, t.began, 1, NULL, t.token, t.id FROM attempt t JOIN accepted USING (id);

CREATE TEMP VIEW finding (what, detail) AS
SELECT 'an acknowledged write is lost', t::text FROM attempt t LEFT JOIN accepted a USING (id)
WHERE t.outcome = 'ok' AND a.id IS NULL
UNION ALL
SELECT 'a refused write is there', a::text FROM attempt t JOIN accepted a USING (id) WHERE t.outcome LIKE 'LF%'
UNION ALL
SELECT 'a write is there that no holder has tried', a::text FROM accepted a LEFT JOIN attempt t USING (id, name, token)
WHERE t.id IS NULL
UNION ALL
SELECT 'in the order of commits a token went down', format('%s after %s', a, a.before)
FROM (SELECT *, lag(token) OVER (PARTITION BY name ORDER BY n) AS before FROM accepted) a WHERE token < before
UNION ALL
SELECT 'in the order of commits a place is missing', name FROM accepted GROUP BY name HAVING max(n) <> count(*)
UNION ALL
SELECT 'after an acknowledged token a lower one was accepted', format('%s began after %s', id, known)
FROM (
	SELECT id, token, max(known) OVER (PARTITION BY name ORDER BY at, is_beginning ROWS UNBOUNDED PRECEDING) AS known
	FROM event) e
WHERE token < known
UNION ALL
SELECT 'a mark is lower than what was accepted', format('%s: %s', a.name, m.token)
FROM (SELECT name, max(token) AS token FROM accepted GROUP BY name) a LEFT JOIN lockfence.mark m ON m.resource = a.name
WHERE m.token IS NULL OR m.token < a.token
UNION ALL
SELECT 'a mark is higher than any token', m::text
FROM lockfence.mark m JOIN (SELECT name, max(token) AS token FROM attempt GROUP BY name) t ON m.resource = t.name
WHERE m.token > t.token
UNION ALL
SELECT 'an account is not as its last write left it', format('%s, %s', a, c)
FROM account c JOIN (SELECT DISTINCT ON (name) * FROM accepted ORDER BY name, n DESC) a USING (name)
WHERE c.n <> a.n OR c.fence <> a.token;

SELECT what || ': ' || detail
FROM (SELECT *, row_number() OVER (PARTITION BY what ORDER BY detail) AS place FROM finding) f
WHERE place <= 5 ORDER BY what, place;
