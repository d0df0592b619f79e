# Lock holders that can be stopped: psql processes, each in its own process group.  Shared by scripts/demo and
# scripts/drill; a bash file to be sourced after lib.sh, with WORK set.  Needs Linux.
#
# A holder's job is an SQL file for psql.  At \! until [ -e "$WORK_DONE" ] ... it waits for finish_work.  Its
# output goes to $WORK/holder.N.

LIMIT=${LIMIT:-60}	# seconds that any one step may take on a slow machine

holders=()

now() { local t=${EPOCHREALTIME/[.,]/}; echo $((t / 1000)); }

# start_holder N JOB PSQL-ARGUMENT...
start_holder() {
	local number=$1 job=$2 done=$WORK/done.$1
	shift 2
	rm -f "$done" "$WORK/holder.$number"
	WORK_DONE=$done PGAPPNAME="holder $number" setsid psql -XqtA -v ON_ERROR_STOP=1 \
		-v holder="holder $number" "$@" <"$job" >"$WORK/holder.$number" 2>&1 &
	holders[$number]=$!
	disown
}

# The work of a holder is done, as far as it knows: it goes on to its write.
finish_work() { : >"$WORK/done.$1"; }

stop_holder() {
	kill -STOP -- "-${holders[$1]}"
	wait_until is_stopped "$1"
}

resume_holder() { kill -CONT -- "-${holders[$1]}"; }

kill_holders() {
	local pid
	for pid in "${holders[@]}"; do kill -KILL -- "-$pid" 2>/dev/null || true; done
}

# wait_until COMMAND...
wait_until() {
	local limit=$(($(now) + LIMIT * 1000))
	until "$@"; do
		[ "$(now)" -lt $limit ] || die "gave up waiting: $*"
		sleep 0.02
	done
}

has_said() { grep -qsE "$2" "$WORK/holder.$1"; }
# D: stopped in the moment in which it starts the shell, which is stopped itself and has to be waited for.
# With the signal pending it does nothing of its own either.
is_stopped() { grep -q '^State:.[TD]' "/proc/${holders[$1]}/status"; }
has_ended() { ! kill -0 "${holders[$1]}" 2>/dev/null; }
