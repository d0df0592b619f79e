# Processes: what the kit starts, it stops.  Sourced by run.

SPAWNED=()			# process groups, in the order they were started

# With root the programs run as the database's user, who owns $WORK; exec all the way, so that the
# process started is the process named.
unprivileged=()
[ "$(id -u)" != 0 ] || unprivileged=(setpriv --reuid=postgres --regid=postgres --init-groups --)

# spawn NAME COMMAND...: in a process group of its own; its number is left in LAST.
spawn() {
	local name=$1
	shift
	setsid "$@" </dev/null >>"$LOGS/$name.log" 2>&1 &
	LAST=$!
	SPAWNED+=("$LAST")
}

spawn_as_user() {
	local name=$1
	shift
	spawn "$name" "${unprivileged[@]}" "$@"
}

alive() { kill -0 "$1" 2>/dev/null; }

# stop_group PGID: asks, then insists.  A stopped process gets no signal before it continues.
stop_group() {
	local _
	kill -TERM -- "-$1" 2>/dev/null || return 0
	kill -CONT -- "-$1" 2>/dev/null || true
	for _ in $(seq 50); do
		kill -0 -- "-$1" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL -- "-$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

kill_group() {
	kill -KILL -- "-$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

stop_everything() {
	local i
	for ((i = ${#SPAWNED[@]} - 1; i >= 0; i--)); do
		kill -TERM -- "-${SPAWNED[i]}" 2>/dev/null || true
		kill -CONT -- "-${SPAWNED[i]}" 2>/dev/null || true
	done
	for ((i = ${#SPAWNED[@]} - 1; i >= 0; i--)); do stop_group "${SPAWNED[i]}"; done
	SPAWNED=()
}

# wait_until SECONDS COMMAND...: true as soon as the command is.
wait_until() {
	local until=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$until" ] || return 1
		sleep 0.05
	done
}

# exit_status PID: leaves it in STATUS.
exit_status() {
	STATUS=0
	wait "$1" 2>/dev/null || STATUS=$?
}
