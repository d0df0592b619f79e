-- Posts :amount entries of a day to book eu, unless it was posted, under the lock whose token is :token.
\if :fenced
	-- on getting the lock: from here on every stale holder is refused
	SELECT lockfence.present('ledger:eu', :token);
\endif
SELECT count(*) = 0 AS due FROM entry WHERE book = 'eu' AND day = '2026-11-30' \gset
\echo reads
\! until [ -e "$WORK_DONE" ]; do sleep 0.05; done
\if :due
	BEGIN;
	\if :fenced
		SELECT lockfence.present('ledger:eu', :token);
	\endif
	INSERT INTO entry (book, day, amount)
	SELECT 'eu', '2026-11-30', n * 0.01 FROM generate_series(1, :amount) AS n;
	COMMIT;
\endif
\echo done
