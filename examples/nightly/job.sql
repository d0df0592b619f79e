-- Makes the report anew, under the lock whose token is :token.
\if :fenced
	-- on getting the lock: from here on every stale holder is refused
	SELECT lockfence.present('jobs/nightly-report', :token);
\endif
CREATE TEMPORARY TABLE figures AS SELECT region, sum(amount) AS total FROM shop_order GROUP BY region;
\echo reads
\! until [ -e "$WORK_DONE" ]; do sleep 0.05; done
BEGIN;
\if :fenced
	SELECT lockfence.present('jobs/nightly-report', :token);
\endif
DELETE FROM report;
INSERT INTO report SELECT region, total FROM figures;
COMMIT;
\echo done
