#!/bin/sh
# Runs the migrations that the database has not had yet, in their order: what migration tools do, in short, and as it was
# before there was a fence.
set -e
sql() { psql -XqAt -v ON_ERROR_STOP=1 "$@"; }

version=$(sql -c 'SELECT max(version) FROM schema_version')
echo reads
until [ -e "$WORK_DONE" ]; do sleep 0.05; done
for file in V*__*.sql; do
	number=${file#V} number=${number%%__*}
	[ "$number" -gt "$version" ] || continue
	sql -1 -f "$file" -c "INSERT INTO schema_version VALUES ($number, '$file')"
done
echo done
