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
			SELECT 'pause:' || v FROM unnest(ARRAY['between', 'open-read', 'open-held', 'etcdctl', 'idle', 'bypass',
				'cut-short', 'turns-1']) v
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

# sqlstate STATEMENT: of the error that it ends with; empty: none.
sqlstate() {
	"${unprivileged[@]}" psql "$DSN" -qAtX -v VERBOSITY=sqlstate -c "$1" 2>&1 >/dev/null | sed -n 's/^ERROR:  //p'
}

# ---- the lock service as a validator -------------------------------------------------------------

# validator_start [SETTING=VALUE...]: the database asks the lock service that is running; once there is one,
# pause_kit.validated is a table whose fence does.  Not in a database given by --dsn.
validator_start() {
	local setting
	[ -n "$OWN_CLUSTER" ] || return 1
	for setting in url="$URL/v1/validate" ca_file="$CERTS/ca.pem" cert_file="$CERTS/database.pem" \
		key_file="$CERTS/database.key" timeout=30s connect_timeout=30s breaker_reset=100ms "$@"; do
		echo "lockfence_validate.${setting%%=*} = '${setting#*=}'"
	done | as_user tee -a "$PGDATA/postgresql.conf" >/dev/null
	SETTINGS_READ=$((${SETTINGS_READ:-0} + 1))
	echo "lockfence_kit.read = $SETTINGS_READ" | as_user tee -a "$PGDATA/postgresql.conf" >/dev/null
	sql 'SELECT pg_reload_conf()' >/dev/null
	wait_until 30 settings_are_read || die 'the settings of the validator are not read'
	sql 'CREATE EXTENSION IF NOT EXISTS lockfence_validate' >/dev/null 2>>"$LOGS/extension.log" ||
		{ cat "$LOGS/extension.log" >&2; die 'lockfence_validate cannot be created'; }
	[ "$(sql "SELECT to_regclass('pause_kit.validated') IS NULL")" = f ] || validated_table
}

settings_are_read() { [ "$(sql "SELECT current_setting('lockfence_kit.read', true)")" = "$SETTINGS_READ" ]; }

validated_table() {
	"${unprivileged[@]}" psql "$DSN" -qAtX -v ON_ERROR_STOP=1 >/dev/null 2>"$LOGS/table.log" <<-'SQL' ||
		CREATE TABLE pause_kit.validated (name text PRIMARY KEY, n bigint NOT NULL DEFAULT 0);
		INSERT INTO pause_kit.validated SELECT 'restore-' || i FROM generate_series(1, 8) i;
		INSERT INTO pause_kit.validated VALUES ('kit:validated');
		SELECT lockfence.attach('pause_kit.validated', '{name}', token_column => 'fence',
			validator => 'lockfence.validate(text, lockfence.fence_token)');
	SQL
		{ cat "$LOGS/table.log" >&2; die 'the kit cannot make its validated table'; }
}

# write_row TABLE NAME TOKEN: the SQLSTATE of the refusal, or accepted.
write_row() {
	local code
	code=$(sqlstate "UPDATE pause_kit.$1 SET n = n + 1, fence = $3 WHERE name = '$2'")
	echo "${code:-accepted}"
}

mark_of() { sql "SELECT coalesce(max(token), 0) FROM lockfence.mark WHERE resource = '$1'"; }
