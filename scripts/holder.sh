# Lock holders that can be stopped: processes, each with all that it starts in a session of its own.  Shared by scripts/demo,
# scripts/drill and examples/run; a bash file to be sourced after lib.sh, with WORK set.  Needs Linux.
#
# A holder's job is an SQL file for psql.  At \! until [ -e "$WORK_DONE" ] ... it waits for finish_work.  Its
# output goes to $WORK/holder.N.

LIMIT=${LIMIT:-60}	# seconds that any one step may take on a slow machine

holders=()

now() { local t=${EPOCHREALTIME/[.,]/}; echo $((t / 1000)); }

# start_program N COMMAND...: the holder is the command; standard input is passed on to it.
start_program() {
	local number=$1 done=$WORK/done.$1
	shift
	rm -f "$done" "$WORK/holder.$number"
	WORK_DONE=$done PGAPPNAME="holder $number" setsid "$@" <&0 >"$WORK/holder.$number" 2>&1 &
	holders[$number]=$!
	disown
}

# start_holder N JOB PSQL-ARGUMENT...
start_holder() {
	local number=$1 job=$2
	shift 2
	start_program "$number" psql -XqtA -v ON_ERROR_STOP=1 -v holder="holder $number" "$@" <"$job"
}

# signal_holder N SIGNAL: to each process of its session, since there may be several process groups.
signal_holder() {
	local pid
	# a process may end meanwhile, which is an error to awk and not to cat
	for pid in $(cat /proc/[0-9]*/stat 2>/dev/null | awk -v session="${holders[$1]}" '$6 == session { print $1 }'); do
		kill "-$2" "$pid" 2>/dev/null || true
	done
}

# The work of a holder is done, as far as it knows: it goes on to its write.
finish_work() { : >"$WORK/done.$1"; }

stop_holder() {
	signal_holder "$1" STOP
	wait_until is_stopped "$1"
}

resume_holder() { signal_holder "$1" CONT; }

kill_holders() {
	local number
	for number in "${!holders[@]}"; do signal_holder "$number" KILL; done
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
