SELECT CASE WHEN count(*) = 1 THEN 'right'
	ELSE format('wrong: one job was sent, and it was paid out %s times', count(*)) END
FROM payout
