# Proof 1: a holder that was stopped past its lease writes when it wakes, and is refused.
#
# Stopped between reading and writing: outside a transaction, in one that has only read, in one that holds
# the resource, and under an independent client.  The variants run side by side, each on a lock of its own.
# A control does the same to a table without a fence: there the stale write is accepted, and the checker
# must say so.

proof_1() {
	local v
	say "proof 1: pauses of $STOP s with a lease of $TTL s"
	service_start loopback
	if [ -n "$TABLE" ]; then
		# one table, one row: the variants take turns
		for v in between open-read open-held etcdctl; do pause_variants "$v"; done
	else
		pause_variants between open-read open-held etcdctl control
	fi
	service_stop
}

pause_variants() {
	local v
	VARIANTS=()
	for v; do
		if [ "$v" = open-held ] && ! preemption_on; then
			result 1 "$(variant_name open-held)" 'the fence ends the stopped transaction' \
				'lockfence.preempt is off on this server' 'not run'
		else
			VARIANTS+=("$v")
		fi
	done
	[ ${#VARIANTS[@]} -gt 0 ] || return 0
	for v in "${VARIANTS[@]}"; do start_holder "$v"; done
	for v in "${VARIANTS[@]}"; do
		wait_until 60 has "$H1/1-$v.jsonl" holder ready ok || wrong_start "$v"
	done
	stop_holders
	for v in "${VARIANTS[@]}"; do start_successor "$v"; done
	wait_out_the_pause
	wake_holders
	for v in "${VARIANTS[@]}"; do judge_pause "$v"; done
}

variant_name() {
	case $1 in
		between) echo 'paused outside a transaction' ;;
		open-read) echo 'paused in a transaction that has read' ;;
		open-held) echo 'paused in a transaction that holds the resource' ;;
		etcdctl) echo 'paused under etcdctl lock' ;;
		control) echo 'control: a table without a fence' ;;
	esac
}

resource_of() { if [ -n "$TABLE" ]; then echo "$RESOURCE"; else echo "pause:$1"; fi; }

wrong_start() { die "the holder of '$1' did not get to the point where it is to be stopped; see $LOGS"; }

# writer VARIANT WHO SCENARIO GATE: its arguments, in W.
writer_args() {
	W=("$BUILD/pause-writer" --scenario "$3" --resource "$(resource_of "$1")" --dsn "$DSN"
		--history "$H1/1-$1.jsonl" --who "$2" --gate "$4")
	[ "$1" != control ] || W+=(--account pause_kit.unfenced)
	[ -z "$TABLE" ] || W+=(--table "$TABLE" --row "$ROW" --change "$CHANGE")
}

# start_client VARIANT WHO SCENARIO GATE CERT: a holder of ours, or etcdctl with a child.
start_client() {
	local v=$1 who=$2 history=$H1/1-$1.jsonl scenario=$3
	[ "$scenario" != control ] || scenario=between
	if [ "$v" = etcdctl ]; then
		[ "$scenario" = successor ] || scenario=between
		writer_args "$v" "$who" "$scenario" "$4"
		note "$history" "$who" acquire call id="$who-a1" lock="$(resource_of "$v")"
		spawn_as_user "1-$v-$who" env ETCDCTL_ENDPOINTS="$ENDPOINTS" SENT="$("$BUILD/pause-note" -)" TTL="$TTL" \
			etcdctl lock --ttl "$TTL" "/other/$v" -- "$SRC/test/pause/lib/etcdctl-child" \
			"$history" "$who" "$(resource_of "$v")" "$who-a1" "$BUILD/pause-note" "${W[@]}"
	else
		writer_args "$v" "$who" "$scenario" "$4"
		spawn_as_user "1-$v-$who" "${W[@]}" --url "$URL" --ca "$CERTS/ca.pem" --cert "$CERTS/$5.pem" \
			--key "$CERTS/$5.key" --ttl "$TTL" --wait $((STOP + 60))
	fi
}

start_holder() {
	: >"$H1/1-$1.jsonl"
	[ "$(id -u)" != 0 ] || chown postgres: "$H1/1-$1.jsonl"
	rm -f "$WORK/gate-$1-"*
	start_client "$1" holder "$1" "$WORK/gate-$1-holder" a
	HOLDER[$1]=$LAST
}

start_successor() {
	start_client "$1" successor successor "$WORK/gate-$1-successor" b
	SUCCESSOR[$1]=$LAST
}

stop_holders() {
	local v
	STOPPED_AT=$("$BUILD/pause-note" -)
	for v in "${VARIANTS[@]}"; do
		kill -STOP -- "-${HOLDER[$v]}"
		note "$H1/1-$v.jsonl" holder stop ok lock="$(resource_of "$v")"
	done
	for v in "${VARIANTS[@]}"; do
		wait_until 10 is_stopped "${HOLDER[$v]}" || die "could not stop the holder of '$v'"
	done
}

# Every process of the group, a child of etcdctl as well.
is_stopped() {
	local p
	for p in $(pgrep -g "$1"); do
		case $(sed 's/.*) \(.\).*/\1/' "/proc/$p/stat" 2>/dev/null) in T | t | D | '') ;; *) return 1 ;; esac
	done
}

# At least for the pause, and until each successor has written, which is the purpose of the pause.
wait_out_the_pause() {
	local v
	while [ $(($("$BUILD/pause-note" -) - STOPPED_AT)) -lt $((STOP * 1000000)) ]; do sleep 0.1; done
	for v in "${VARIANTS[@]}"; do
		wait_until 60 has "$H1/1-$v.jsonl" successor write ok || true
	done
}

# The gate opens first: the stopped holders see it when they wake, and write at once.
wake_holders() {
	local v
	for v in "${VARIANTS[@]}"; do : >"$WORK/gate-$v-holder"; done
	for v in "${VARIANTS[@]}"; do
		note "$H1/1-$v.jsonl" holder continue ok lock="$(resource_of "$v")"
		kill -CONT -- "-${HOLDER[$v]}"
	done
	for v in "${VARIANTS[@]}"; do
		wait_until 60 has_ended "${HOLDER[$v]}" || kill_group "${HOLDER[$v]}"
		: >"$WORK/gate-$v-successor"
		wait_until 60 has_ended "${SUCCESSOR[$v]}" || kill_group "${SUCCESSOR[$v]}"
	done
}

has_ended() { ! alive "$1"; }

judge_pause() {
	local v=$1 h=$H1/1-$1.jsonl granted refused took text
	WRONG=()
	if [ "$v" = control ]; then judge_control "$h"; return; fi
	exit_status "${HOLDER[$v]}"
	judge_holder "$v" "$STATUS"
	exit_status "${SUCCESSOR[$v]}"
	judge_successor "$v" "$STATUS"
	granted=$(seconds_between "$(event "$h" holder stop ok t)" "$(event "$h" successor acquire ok t)")
	took=$(milliseconds "$(event "$h" successor present ok took)")
	refused=$(grep -c '"who":"holder","what":"write","phase":"no".*"code":"LF001"' "$h" || true)
	text="successor granted after $granted s, took over in $took ms; $refused write refused with LF001"
	if [ "$v" = open-held ]; then judge_preemption "$h" && text="$text after the fence ended its transaction"; fi
	if [ "$v" != etcdctl ]; then text="$text; onFence fired"; fi
	check_history "$h"
	result 1 "$(variant_name "$v")" "$(expected_pause "$v")" "$(seen "$text; $CHECKED")" "$(verdict)"
}

expected_pause() {
	local text="another holder is granted the lock while it is stopped for $STOP s; its write is refused with LF001"
	[ "$1" = etcdctl ] || text="$text; onFence fires"
	[ "$1" != open-held ] || text="$text; its open transaction does not delay the successor"
	echo "$text"
}

judge_holder() {
	local h=$H1/1-$1.jsonl
	case $2 in
		0) ;;
		1) wrong 'the stale write was accepted' ;;
		*) [ "$1" = etcdctl ] || wrong "the stopped holder ended with status $2" ;;
	esac
	grep -q '"who":"holder","what":"write","phase":"no".*"code":"LF001"' "$h" ||
		wrong 'no write of the stopped holder was refused with LF001'
	! grep -q '"who":"holder","what":"write","phase":"ok"' "$h" || wrong 'the stopped holder wrote'
	[ "$1" = etcdctl ] || has "$h" holder fence ok || wrong 'onFence did not fire'
}

judge_successor() {
	local h=$H1/1-$1.jsonl
	[ "$2" = 0 ] || [ "$1" = etcdctl ] || wrong "the successor ended with status $2"
	has "$h" successor acquire ok || wrong 'no other client was granted the lock'
	[ "$(event "$h" successor write ok t)" ] || wrong 'the successor could not write'
	[ "$(event "$h" successor write ok t)" -lt "$(event "$h" holder continue ok t)" ] 2>/dev/null ||
		wrong 'the successor wrote only after the stopped holder had been resumed'
}

# The stopped holder's first error is that its connection is gone.
judge_preemption() {
	grep -q '"who":"holder","what":"write","phase":"no".*"code":"\(57P01\|08006\)"' "$1" ||
		{ wrong 'the fence did not end the open transaction'; return 1; }
}

# Without the fence the stale write is accepted; both the writer and the checker must notice.
judge_control() {
	local said
	exit_status "${HOLDER[control]}"
	[ "$STATUS" = 1 ] || wrong "the writer did not see its stale write accepted, but ended with status $STATUS"
	said=$("$BUILD/pause-check" "$1") && wrong 'the checker found nothing wrong'
	grep -q 'below the mark' <<<"$said" || wrong "the checker rejects it for another reason: ${said#*: }"
	echo "$said" >>"$OUT/checks.log"
	result 1 "$(variant_name control)" 'the stale write is accepted, and the checker rejects the history' \
		"$(seen 'accepted; the checker: write accepted although its token is below the mark')" "$(verdict)"
}
