SELECT CASE WHEN state = 'settled' AND paid = 3 THEN 'right'
	ELSE format('wrong: the batch was settled, and is %s again, %s of %s paid', state, paid, instalments) END
FROM batch WHERE batch_id = 9921
