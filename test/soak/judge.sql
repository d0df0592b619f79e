-- What the soak test found: figures, then a line a check, as "ok" or "not ok".
-- Variables: slack, by how many kB memory may grow once all is warm.
\set ON_ERROR_STOP 1
\pset format unaligned
\pset tuples_only on
SET client_min_messages = error;

-- In thirds: the first is there to warm up.
CREATE FUNCTION pg_temp.third(t timestamptz) RETURNS int LANGUAGE sql AS $$
	SELECT 1 + least(2, floor(3 * extract(epoch FROM t - min(at)) / extract(epoch FROM max(at) - min(at))))::int FROM soak.samples
$$;
CREATE TEMP TABLE peak AS
SELECT pg_temp.third(at) AS third, max(rss_anon) AS rss_anon, max(rss) AS rss, max(marks) AS marks,
	max(heap) / 1024 AS heap, max(index) / 1024 AS index, max(heap + index) / 1024 AS size
FROM soak.samples GROUP BY 1;
CREATE TEMP TABLE context_peak AS
SELECT pg_temp.third(at) AS third, max(bytes) / 1024 AS kb, max(own) / 1024 AS own, max(fences) AS fences FROM soak.contexts GROUP BY 1;

SELECT format('  third %s: the session has %s kB of its own, %s kB with shared memory, %s kB in contexts, %s fences; '
	'at most %s marks in %s kB, their index has %s kB', third, rss_anon, rss, coalesce(kb::text, '?'),
	coalesce(fences::text, '?'), marks, heap, index)
FROM peak LEFT JOIN context_peak USING (third) ORDER BY third;
SELECT format('  %s: %s writes accepted, %s refused as stale', kind, count(*), max(coalesce(n, 0)))
FROM soak.accepted LEFT JOIN soak.refused USING (kind) GROUP BY kind ORDER BY kind;
SELECT format('  %s steps of DDL, %s deadlocks with them, %s tokens issued, %s marks written, floor %s',
	(SELECT last_value FROM soak.steps), coalesce((SELECT n FROM soak.refused WHERE kind = 'deadlock'), 0),
	(SELECT last_value FROM soak.issued),
	pg_stat_get_tuples_inserted(c.oid) + pg_stat_get_tuples_updated(c.oid),
	(SELECT value FROM lockfence.state WHERE name = 'floor'))
FROM pg_class c WHERE c.oid = 'lockfence.mark'::regclass;

-- An hour's worth of renewals: of 50 leases every ten seconds, whether or not the client has come so far.
SELECT greatest(18000 - last_value, 0) AS missing FROM soak.renewals \gset
CALL soak.renew_many(:missing);
SELECT format('  %s leases were renewed %s times, %s of them just now; %s of %s updates were heap-only', (SELECT count(*) FROM lockfence.lease),
	last_value, :missing, pg_stat_get_tuples_hot_updated(c.oid), pg_stat_get_tuples_updated(c.oid))
FROM soak.renewals, pg_class c WHERE c.oid = 'lockfence.lease'::regclass;

CREATE FUNCTION pg_temp.verdict(good boolean, what text, VARIADIC figures text[]) RETURNS text LANGUAGE sql AS
$$ SELECT CASE WHEN good THEN 'ok - ' ELSE 'not ok - ' END || format(what, VARIADIC figures) $$;

SELECT pg_temp.verdict(count(*) = 0, 'no token goes down in %s accepted writes (%s do)',
	(SELECT count(*) FROM soak.accepted)::text, count(*)::text)
FROM (SELECT token < lag(token) OVER (PARTITION BY resource ORDER BY id) AS down FROM soak.accepted) a
WHERE down;

SELECT pg_temp.verdict(count(*) = 0, 'marks and floor cover what was accepted (%s do not)', count(*)::text)
FROM (SELECT resource, max(token) AS highest FROM soak.accepted WHERE kind <> 'doc' GROUP BY resource) a
	LEFT JOIN lockfence.mark m USING (resource)
WHERE highest > coalesce(m.token, (SELECT value FROM lockfence.state WHERE name = 'floor'));

SELECT pg_temp.verdict(count(*) = 5 AND bool_and(n > 0), 'each kind of fence accepted and refused (%s kinds)', count(*)::text)
FROM (SELECT DISTINCT kind FROM soak.accepted) a LEFT JOIN soak.refused USING (kind);

SELECT pg_temp.verdict(last_value >= 28, 'every step of DDL was taken (%s in all)', last_value::text) FROM soak.steps;

SELECT pg_temp.verdict(coalesce(sum(n), 0) * 1000 <= (SELECT count(*) FROM soak.accepted), 'deadlocks are rare (%s)', coalesce(sum(n), 0)::text)
FROM soak.refused WHERE kind = 'deadlock';

SELECT pg_temp.verdict(count(*) = 0, 'verify() finds no error (%s)', coalesce(string_agg(target || ' ' || code, ', '), 'none'))
FROM lockfence.verify() WHERE severity = 'error';

SELECT pg_temp.verdict(b.rss_anon <= a.rss_anon + :slack, 'memory of a session is flat (%s kB, later %s kB)',
	a.rss_anon::text, b.rss_anon::text)
FROM peak a, peak b WHERE a.third = 2 AND b.third = 3;

-- PostgreSQL itself remembers the row type of each table that was made anew.
SELECT pg_temp.verdict(b.kb <= a.kb + :slack AND b.own <= a.own + 16 AND b.fences <= 12,
	'so are its memory contexts (%s kB, later %s kB; lockfence''s %s kB, later %s kB, for %s fences)',
	a.kb::text, b.kb::text, a.own::text, b.own::text, b.fences::text)
FROM context_peak a, context_peak b WHERE a.third = 2 AND b.third = 3;

SELECT pg_temp.verdict(max(size - marks) <= 512, 'lockfence.mark never takes more than 512 kB and 1 kB a mark (%s kB and %s marks at most)',
	max(size)::text, max(marks)::text)
FROM peak;

-- 50 rows, in pages that are half full; 18,000 rows would take 2,000 kB.
SELECT pg_temp.verdict(size <= 256, 'lockfence.lease with its index never takes more than 256 kB (%s kB)', size::text)
FROM (SELECT greatest(max(leases), pg_total_relation_size('lockfence.lease')) / 1024 AS size FROM soak.samples) s;
