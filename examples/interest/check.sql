SELECT CASE WHEN count(*) = 100 THEN 'right'
	ELSE format('wrong: interest is due for 100 accounts, and was posted %s times', count(*)) END
FROM posting
