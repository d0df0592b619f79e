SELECT CASE WHEN amount = 320 AND versions = 2 THEN 'right'
	ELSE format('wrong: bread costs %s cents, after %s versions', amount, versions) END
FROM price, (SELECT count(*) AS versions FROM schema_version) AS v WHERE item = 'bread'
