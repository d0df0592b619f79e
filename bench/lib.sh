# Shared by bench/*; a bash file to be sourced, not run.

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

BENCH=$ROOT/bench
MORE_PACKAGES+=(libpq-dev valgrind)

# prepare_bench: a private server with the extension and the benchmark's own module in it, and the client.
prepare_bench() {
	prepare
	local server
	server=$("$PG_CONFIG" --includedir-server)
	as_user "${CC:-cc}" -O2 -fPIC -shared -I"$server" -o "$WORK/lockfence_bench.so" "$SRC/bench/module.c"
	cp "$WORK/lockfence_bench.so" "$WORK/server$("$PG_CONFIG" --pkglibdir)/"
	compile_with_libpq "$WORK/client" -O2 "$SRC/bench/client.c" -pthread
}

# start_bench ['SETTING = VALUE'...]: nothing runs in the background that would disturb some slice.
start_bench() {
	start_cluster 'fsync = on' 'shared_buffers = 1GB' 'max_connections = 500' 'autovacuum = off' \
		'checkpoint_timeout = 1d' 'max_wal_size = 100GB' 'jit = off' "shared_preload_libraries = 'lockfence'" "$@"
	as_user psql -Xq -v ON_ERROR_STOP=1 <<-'SQL' >/dev/null
		CREATE EXTENSION lockfence;
		CREATE FUNCTION noop_row() RETURNS trigger LANGUAGE c AS 'lockfence_bench';
		CREATE FUNCTION count_begin() RETURNS void LANGUAGE c AS 'lockfence_bench';
		CREATE FUNCTION count_end() RETURNS void LANGUAGE c AS 'lockfence_bench';
	SQL
}

# make_variants ROWS RESOURCES VARIANT...: each in the schema of its name; which row belongs to which resource
# is the client's rule, see write_value() there.  Half-full pages: updates stay on theirs, in every variant.
make_variants() {
	local rows=$1 resources=$2 variant
	shift 2
	for variant; do
		{
			cat <<-'SQL'
				SET client_min_messages = warning;
				DROP SCHEMA IF EXISTS :"variant" CASCADE;
				CREATE SCHEMA :"variant";
				SET search_path = :"variant";
				CREATE TABLE target (id int PRIMARY KEY, batch int NOT NULL, v int NOT NULL) WITH (fillfactor = 50);
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
				VACUUM ANALYZE target;
			SQL
		} | as_user psql -Xq -v ON_ERROR_STOP=1 -v variant="$variant" -v rows="$rows" -v resources="$resources" >/dev/null
	done
}

# files_of VARIANT...: into the array FILES
files_of() {
	local variant
	FILES=()
	for variant; do FILES+=("$SRC/bench/variants/$variant.sql"); done
}
