# Shared by bench/*; a bash file to be sourced, not run.

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

# prepare_bench: a private server with the extension and the benchmark's own module in it, and the clients.  What
# has been built already, where one part of the benchmark calls others or scripts/test calls it, is not built again.
prepare_bench() {
	if [ -n "${SRC-}" ]; then
		make_workdir
		[ "$(id -u)" != 0 ] || chown postgres: "$WORK"
	else
		prepare
	fi
	[ -z "${BENCH_BIN-}" ] || return 0
	need_packages libpq-dev valgrind python3
	as_user "${CC:-cc}" -O2 -fPIC -shared -I"$("$PG_CONFIG" --includedir-server)" -o "$WORK/bench.so" "$SRC/bench/module.c"
	cp "$WORK/bench.so" "$(pg_config --pkglibdir)/lockfence_bench.so"
	export BENCH_BIN=$WORK
	compile_with_libpq "$BENCH_BIN/client" -O2 "$SRC/bench/client.c" -pthread
	compile_with_libpq "$BENCH_BIN/takeover" -O2 "$SRC/bench/takeover.c"
}

# start_bench ['SETTING = VALUE'...]: nothing runs in the background that would disturb some slice, and no page is
# written whole to the WAL.
start_bench() {
	start_cluster 'fsync = on' 'shared_buffers = 1GB' 'max_connections = 500' 'autovacuum = off' 'jit = off' \
		'checkpoint_timeout = 1d' 'max_wal_size = 100GB' "shared_preload_libraries = 'lockfence'" "$@"
	as_user psql -Xq -v ON_ERROR_STOP=1 <<-'SQL' >/dev/null
		CREATE EXTENSION lockfence;
		CREATE EXTENSION pgstattuple;
		CREATE FUNCTION noop_row() RETURNS trigger LANGUAGE c AS 'lockfence_bench';
		CREATE FUNCTION noop_present(text, lockfence.fence_token) RETURNS lockfence.fence_token LANGUAGE c AS 'lockfence_bench';
		CREATE FUNCTION count_begin() RETURNS void LANGUAGE c AS 'lockfence_bench';
		CREATE FUNCTION count_end() RETURNS void LANGUAGE c AS 'lockfence_bench';
	SQL
}

# make_variants ROWS RESOURCES VARIANT...: each in the schema of its name; which row belongs to which resource
# is the client's rule, see write_value() there.  Rows are like those of pgbench_accounts, but for the column that is
# written, which is the last: else the WAL of an update that also sets a token, added behind it, has the filler between
# the two.  Pages have free space, as in a table that has been updated for a while.
make_variants() {
	local rows=$1 resources=$2 variant
	shift 2
	for variant; do
		{
			cat <<-'SQL'
				SET client_min_messages = warning;
				CREATE SCHEMA :"variant";
				SET search_path = :"variant";
				CREATE TABLE target (id int PRIMARY KEY, batch int NOT NULL, filler char(84) NOT NULL DEFAULT '', v int NOT NULL)
				WITH (fillfactor = 50);
				CREATE TEMP TABLE batches AS SELECT g AS id,
					CASE WHEN :resources > :rows THEN g * (:resources / :rows) ELSE g % :resources END AS batch
				FROM generate_series(1, :rows) g;
			SQL
			sed '/^-- each/,$d' "$SRC/bench/variants/$variant.sql"
			cat <<-'SQL'
				BEGIN;
				SELECT lockfence.present(5);
				INSERT INTO target (id, batch, v) SELECT id, batch, 0 FROM batches;
				COMMIT;
				ALTER TABLE target RESET (fillfactor);
				VACUUM ANALYZE target, lockfence.mark;
			SQL
		} | as_user psql -Xq -v ON_ERROR_STOP=1 -v variant="$variant" -v rows="$rows" -v resources="$resources" >/dev/null
	done
}

# bulk_statement update|insert|copy ROWS RESOURCES: writes what every variant runs then to $WORK/bulk.sql
bulk_statement() {
	{
		printf '%s\n' '-- each' 'BEGIN;' 'SELECT lockfence.present(5);'
		case $1 in
			update) echo 'UPDATE target SET v = v + 1;' ;;
			insert) echo "INSERT INTO target (id, batch, v) SELECT g, g % $3, 0 FROM generate_series(1, $2) g;" ;;
			copy)
				awk -v n="$2" -v m="$3" 'BEGIN {
					filler = sprintf("%84s", ""); gsub(/ /, "x", filler)
					for (i = 1; i <= n; i++) print i "\t" i % m "\t" filler "\t0" }' >"$WORK/rows"
				echo "COPY target (id, batch, filler, v) FROM '$WORK/rows';" ;;
		esac
		echo 'COMMIT;'
	} >"$WORK/bulk.sql"
}

# bulk_reset update|insert|copy: SQL after which the statement finds the table as it was
bulk_reset() {
	case $1 in
		update) echo 'VACUUM target' ;;
		*) echo 'SET lockfence.bypass = on; TRUNCATE target; SET lockfence.bypass = off' ;;
	esac
}

# files_of VARIANT...: into the array FILES
files_of() {
	local variant
	FILES=()
	for variant; do FILES+=("$SRC/bench/variants/$variant.sql"); done
}
