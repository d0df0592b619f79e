SELECT CASE WHEN sum(total) = (SELECT sum(amount) FROM shop_order) THEN 'right'
	ELSE format('wrong: %s was ordered, and the report says %s', (SELECT sum(amount) FROM shop_order), sum(total)) END
FROM report
