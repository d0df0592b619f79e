# The database whose rows the lock protects.  Sourced by run.

# database_start: a private cluster with the extension, unless --dsn names another.
database_start() {
	if [ -z "$DSN" ]; then
		start_cluster "lockfence.preempt = on" 'max_connections = 150' "$@"
		DSN="host=$PGHOST port=$PGPORT user=$PGUSER dbname=$PGDATABASE"
		OWN_CLUSTER=1
	fi
	sql 'SELECT 1' >/dev/null || die "cannot connect to '$DSN'"
	sql 'CREATE EXTENSION IF NOT EXISTS lockfence' >/dev/null 2>"$LOGS/extension.log" ||
		{ cat "$LOGS/extension.log" >&2; die 'the extension cannot be created in that database'; }
	[ -n "$TABLE" ] || own_table
}

sql() { "${unprivileged[@]}" psql "$DSN" -qAtX -v ON_ERROR_STOP=1 -c "$1"; }

# The kit's own tables: an account a lock, which counts the writes it has seen; and one without a fence, to
# show that the proofs can fail.
own_table() {
	"${unprivileged[@]}" psql "$DSN" -qAtX -v ON_ERROR_STOP=1 >/dev/null 2>"$LOGS/table.log" <<-'SQL' ||
		SET client_min_messages = warning;
		DROP SCHEMA IF EXISTS pause_kit CASCADE;
		CREATE SCHEMA pause_kit;
		CREATE TABLE pause_kit.account (name text PRIMARY KEY, n bigint NOT NULL DEFAULT 0);
		INSERT INTO pause_kit.account
			SELECT 'pause:' || v FROM unnest(ARRAY['between', 'open-read', 'open-held', 'etcdctl']) v
			UNION ALL SELECT 'cut-' || i FROM generate_series(1, 8) i
			UNION ALL SELECT 'restore-' || i FROM generate_series(1, 8) i
			UNION ALL SELECT 'storm-' || i FROM generate_series(1, 2000) i;
		CREATE TABLE pause_kit.unfenced (name text PRIMARY KEY, n bigint NOT NULL DEFAULT 0, fence bigint);
		INSERT INTO pause_kit.unfenced VALUES ('pause:control');
		SELECT lockfence.attach('pause_kit.account', '{name}', token_column => 'fence');
	SQL
		{ cat "$LOGS/table.log" >&2; die 'the kit cannot make its table'; }
}

preemption_on() { [ "$(sql 'SHOW lockfence.preempt' 2>/dev/null)" = on ]; }
