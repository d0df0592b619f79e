-- Tries what life.sql lists, and looks at what the fence keeps; says "ok" or "not ok".
SET search_path = life;
SET client_min_messages = error;
SELECT CASE WHEN seen = wanted THEN 'ok' ELSE 'not ok' END, '-', :'stage' || ':', what,
	CASE WHEN seen <> wanted THEN format('# %s instead of %s', seen, wanted) END
FROM (SELECT a.*, outcome(statement) AS seen FROM attempt a) a
UNION ALL
SELECT CASE WHEN v.problem IS NULL THEN 'ok' ELSE 'not ok' END, '-', :'stage' || ':', 'verify() finds no error', v.problem
FROM (SELECT string_agg(problem, '; ') AS problem FROM lockfence.verify() WHERE severity = 'error') v
UNION ALL
SELECT CASE WHEN to_regprocedure('lockfence._of_another()') IS NOT NULL THEN 'ok' ELSE 'not ok' END, '-', :'stage' || ':',
	'functions of other extensions are there', NULL
UNION ALL
SELECT CASE WHEN kept = '1 281474976710661 5 1 t' THEN 'ok' ELSE 'not ok' END, '-', :'stage' || ':',
	'epoch, floor, marks and audit log', '# ' || kept
FROM (SELECT concat_ws(' ',
		(SELECT value FROM lockfence.state WHERE name = 'epoch'),
		(SELECT value FROM lockfence.state WHERE name = 'floor'),
		(SELECT count(*) FROM lockfence.mark WHERE token = token(20)),
		(SELECT count(*) FROM lockfence.mark WHERE token = token(30)),
		(SELECT count(*) >= 2 FROM lockfence.admin_log)) AS kept) k;
