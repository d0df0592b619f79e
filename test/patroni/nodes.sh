# Two PostgreSQL nodes under Patroni, on loopback.  Sourced by run, after the pause kit's proc.sh and etcd.sh.

NODES=(1 2)
declare -A PG_PORT_OF REST_PORT_OF PATRONI_OF FROZEN

# nodes_plan: where each listens; how clients find whichever is the primary.
nodes_plan() {
	local n
	for n in "${NODES[@]}"; do
		PG_PORT_OF[$n]=$(free_port)
		REST_PORT_OF[$n]=$(free_port)
		write_node_conf "$n"
	done
	CLIENT_DSN="host=127.0.0.1,127.0.0.1 port=${PG_PORT_OF[1]},${PG_PORT_OF[2]} user=postgres dbname=postgres"
	CLIENT_DSN+=" connect_timeout=2 target_session_attrs=read-write"
}

# The times are short, so that a round does not take minutes; newer versions of Patroni raise a ttl below 20.
# wal_log_hints is what pg_rewind needs, by which a lost primary comes back.  The standby may have heard of WAL that it
# did not get; no commit in it was acknowledged, so the fence is not to seal the database for it.
write_node_conf() {
	cat >"$WORK/node-$1.yml" <<-YAML
		scope: lockfence
		name: node-$1
		restapi:
		  listen: 127.0.0.1:${REST_PORT_OF[$1]}
		  connect_address: 127.0.0.1:${REST_PORT_OF[$1]}
		etcd3:
		  hosts: $(sed 's,http://,,g' <<<"$ENDPOINTS")
		bootstrap:
		  dcs:
		    ttl: 7
		    loop_wait: 1
		    retry_timeout: 3
		    maximum_lag_on_failover: 1073741824
		    synchronous_mode: true
		    synchronous_mode_strict: $STRICT
		    postgresql:
		      use_pg_rewind: true
		      parameters:
		        wal_log_hints: 'on'
		        max_connections: 50
		        checkpoint_timeout: 30
		  initdb:
		    - encoding: UTF8
		    - no-locale
		    - no-sync
		  pg_hba:
		    - host all all 127.0.0.1/32 trust
		    - host replication all 127.0.0.1/32 trust
		    - local all all trust
		postgresql:
		  listen: 127.0.0.1:${PG_PORT_OF[$1]}
		  connect_address: 127.0.0.1:${PG_PORT_OF[$1]}
		  bin_dir: $WORK/server$("$PG_CONFIG" --bindir)
		  data_dir: $WORK/node-$1
		  pgpass: $WORK/node-$1.pgpass
		  authentication:
		    superuser: {username: postgres}
		    replication: {username: postgres}
		    rewind: {username: postgres}
		  parameters:
		    shared_preload_libraries: lockfence
		    lockfence.on_timeline_change: warn
		    unix_socket_directories: $WORK
		    fsync: 'off'
		watchdog:
		  mode: 'off'
	YAML
}

node_start() {
	spawn_as_user "patroni-$1" patroni "$WORK/node-$1.yml"
	PATRONI_OF[$1]=$LAST
}

# All processes of a node, Patroni first and then the postmaster, so that nothing is started again.
node_processes() {
	local postmaster
	[ -z "${PATRONI_OF[$1]-}" ] || { echo "${PATRONI_OF[$1]}"; pgrep -g "${PATRONI_OF[$1]}"; }
	postmaster=$(head -n 1 "$WORK/node-$1/postmaster.pid" 2>/dev/null) || return 0
	[ -z "$postmaster" ] || ! is_postmaster "$postmaster" "$1" || { echo "$postmaster"; pgrep -P "$postmaster"; }
	return 0
}

# A file that a killed server left may name an unrelated process.
is_postmaster() { [ "$(readlink "/proc/$1/cwd")" = "$WORK/node-$2" ]; }

signal_node() {
	local pid
	for pid in $(node_processes "$2"); do kill "-$1" "$pid" 2>/dev/null || true; done
}

# node_kill N: as if the machine lost power.  What is stopped first cannot notice that the rest is gone.
node_kill() {
	signal_node STOP "$1"
	signal_node KILL "$1"
	wait "${PATRONI_OF[$1]}" 2>/dev/null || true
	PATRONI_OF[$1]=
	FROZEN[$1]=
}

# node_orphan N: PostgreSQL goes on, and does not know that it is not the primary any more.
node_orphan() {
	kill_group "${PATRONI_OF[$1]}"
	PATRONI_OF[$1]=
}

# node_freeze N, node_thaw N: as if the machine were suspended.
node_freeze() { signal_node STOP "$1"; FROZEN[$1]=1; }
node_thaw() { signal_node CONT "$1"; FROZEN[$1]=; }

nodes_kill() {
	local n
	for n in "${NODES[@]}"; do node_kill "$n"; done
}

# ---- what Patroni says in etcd -------------------------------------------------------------------

said_by_patroni() { ectl --command-timeout=2s get --print-value-only "/service/lockfence/$1" 2>/dev/null || true; }

# The number of the node that holds the leader's key; nothing if none does.
leader() { said_by_patroni leader | sed -n 's/^node-//p'; }
leads() { [ "$(leader)" = "$1" ]; }

other() { echo $((3 - $1)); }

# is_synchronous N: it may take over, and commits wait for it.
is_synchronous() { said_by_patroni sync | grep -qE "\"sync_standby\": ?\"node-$1\""; }

# is_settled: one leads, and the other one follows it.
is_settled() {
	local primary
	primary=$(leader)
	[ -n "$primary" ] && [ "$(node_sql "$(other "$primary")" 'SELECT pg_is_in_recovery()' 2>/dev/null)" = t ] &&
		[ "$(node_sql "$primary" "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'" 2>/dev/null)" = 1 ]
}

node_sql() { psql -XqAt -v ON_ERROR_STOP=1 "host=127.0.0.1 port=${PG_PORT_OF[$1]} user=postgres dbname=postgres connect_timeout=2" -c "$2"; }

nodes_start() {
	node_start 1
	wait_until 90 leads 1 || die 'the first node does not become the leader; see the logs'
	node_start 2
	wait_until 120 is_synchronous 2 || die 'the second node does not become a synchronous standby; see the logs'
}

# set_synchronous true|false
set_synchronous() {
	local config
	config=$(said_by_patroni config | jq -c ".synchronous_mode = $1")
	ectl put /service/lockfence/config "$config" >/dev/null
}
