SELECT CASE WHEN count(*) = 1000 THEN 'right'
	ELSE format('wrong: 1000 entries were due, and %s are posted', count(*)) END
FROM entry WHERE day = '2026-11-30'
