#!/bin/sh
# Posts the interest of a month to all accounts, unless it was posted: a script for cron, as it was before there was a fence.
set -e
posted=$(psql -XqAt -v ON_ERROR_STOP=1 -c "SELECT count(*) FROM posting WHERE month = '2026-11-01'")
echo reads
until [ -e "$WORK_DONE" ]; do sleep 0.05; done
if [ "$posted" = 0 ]; then
	psql -Xq -v ON_ERROR_STOP=1 -c "INSERT INTO posting SELECT id, '2026-11-01', balance * 0.002 FROM account"
fi
echo done
