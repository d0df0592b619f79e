-- Pays :amount more instalments of batch 9921, under the lock whose token is :token.
\if :fenced
	-- on getting the lock: from here on every stale holder is refused
	UPDATE batch SET fence = :token WHERE batch_id = 9921;
\endif
SELECT paid + :amount AS paid, CASE WHEN paid + :amount >= instalments THEN 'settled' ELSE 'paying' END AS state
FROM batch WHERE batch_id = 9921 \gset
\echo reads
\! until [ -e "$WORK_DONE" ]; do sleep 0.05; done
SELECT jsonb_build_object('paid', :paid, 'state', :'state') AS changes \gset
\if :fenced
	SELECT lockfence.guarded_update('batch', '{"batch_id": 9921}', :'changes', :token);
\else
	UPDATE batch SET paid = :paid, state = :'state' WHERE batch_id = 9921;
\endif
\echo done
