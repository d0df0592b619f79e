# Holders that are stopped past their lease and write when they wake, for the proofs with etcd and with leases:
# each variant on a lock of its own, side by side.  Sourced by run.
#
# Proof N has start_client_N and judge_N.

pause_variants() {
	local v
	VARIANTS=()
	for v; do
		if [ "$v" = open-held ] && ! preemption_on; then
			result "$PROOF" "$(variant_name open-held)" 'the fence ends the stopped transaction' \
				'lockfence.preempt is off on this server' 'not run'
		else
			VARIANTS+=("$v")
		fi
	done
	[ ${#VARIANTS[@]} -gt 0 ] || return 0
	for v in "${VARIANTS[@]}"; do start_holder "$v"; done
	for v in "${VARIANTS[@]}"; do
		wait_until 60 has "$(history_of "$v")" holder ready ok || wrong_start "$v"
	done
	stop_holders
	cut_short
	for v in "${VARIANTS[@]}"; do start_successor "$v"; done
	wait_out_the_pause
	wake_holders
	for v in "${VARIANTS[@]}"; do "judge_$PROOF" "$v"; done
}

variant_name() {
	case $1 in
		between) echo 'paused outside a transaction' ;;
		open-read) echo 'paused in a transaction that has read' ;;
		open-held) echo 'paused in a transaction that holds the resource' ;;
		etcdctl) echo 'paused under etcdctl lock' ;;
		control) echo 'control: a table without a fence' ;;
		idle) echo 'paused; the successor has done nothing but acquire' ;;
		bypass) echo 'control: the fence is bypassed' ;;
		cut-short) echo 'control: a lease that another hand cut short' ;;
	esac
}

history_of() { echo "$H1/$PROOF-$1.jsonl"; }

resource_of() { if [ -n "$TABLE" ]; then echo "$RESOURCE"; else echo "pause:$1"; fi; }

wrong_start() { die "the holder of '$1' did not get to the point where it is to be stopped; see $LOGS"; }

begin_history() {
	: >"$1"
	[ "$(id -u)" != 0 ] || chown postgres: "$1"
}

# writer VARIANT WHO SCENARIO GATE: its arguments, in W.
writer_args() {
	W=("$BUILD/pause-writer" --scenario "$3" --resource "$(resource_of "$1")" --dsn "$DSN"
		--history "$(history_of "$1")" --who "$2" --gate "$4")
	[ "$1" != control ] || W+=(--account pause_kit.unfenced)
	[ -z "$TABLE" ] || W+=(--table "$TABLE" --row "$ROW" --change "$CHANGE")
}

start_holder() {
	begin_history "$(history_of "$1")"
	rm -f "$WORK/gate-$PROOF-$1-"*
	"start_client_$PROOF" "$1" holder "$1" "$WORK/gate-$PROOF-$1-holder" a
	HOLDER[$1]=$LAST
}

# What the successor does until the holder has woken: writes, or nothing after its acquire.
successor_of() { if [ "$1" = idle ]; then echo idle-successor; else echo successor; fi; }
takeover_of() { if [ "$1" = idle ]; then echo acquire; else echo write; fi; }

start_successor() {
	"start_client_$PROOF" "$1" successor "$(successor_of "$1")" "$WORK/gate-$PROOF-$1-successor" b
	SUCCESSOR[$1]=$LAST
}

stop_holders() {
	local v
	STOPPED_AT=$("$BUILD/pause-note" -)
	for v in "${VARIANTS[@]}"; do
		kill -STOP -- "-${HOLDER[$v]}"
		note "$(history_of "$v")" holder stop ok lock="$(resource_of "$v")"
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

# At least for the pause, and until each successor has done what the pause is for.
wait_out_the_pause() {
	local v
	while [ $(($("$BUILD/pause-note" -) - STOPPED_AT)) -lt $((STOP * 1000000)) ]; do sleep 0.1; done
	for v in "${VARIANTS[@]}"; do
		wait_until 60 has "$(history_of "$v")" successor "$(takeover_of "$v")" ok || true
	done
}

# The gate opens first: the stopped holders see it when they wake, and write at once.
wake_holders() {
	local v
	for v in "${VARIANTS[@]}"; do : >"$WORK/gate-$PROOF-$v-holder"; done
	for v in "${VARIANTS[@]}"; do
		note "$(history_of "$v")" holder continue ok lock="$(resource_of "$v")"
		kill -CONT -- "-${HOLDER[$v]}"
	done
	for v in "${VARIANTS[@]}"; do
		wait_until 60 has_ended "${HOLDER[$v]}" || kill_group "${HOLDER[$v]}"
		: >"$WORK/gate-$PROOF-$v-successor"
		wait_until 60 has_ended "${SUCCESSOR[$v]}" || kill_group "${SUCCESSOR[$v]}"
	done
}

has_ended() { ! alive "$1"; }

judge_holder() {
	local h
	h=$(history_of "$1")
	exit_status "${HOLDER[$1]}"
	case $STATUS in
		0) ;;
		1) wrong 'the stale write was accepted' ;;
		*) [ "$1" = etcdctl ] || wrong "the stopped holder ended with status $STATUS" ;;
	esac
	grep -q '"who":"holder","what":"write","phase":"no".*"code":"LF001"' "$h" ||
		wrong 'no write of the stopped holder was refused with LF001'
	! grep -q '"who":"holder","what":"write","phase":"ok"' "$h" || wrong 'the stopped holder wrote'
}

judge_fence() { has "$(history_of "$1")" holder fence ok || wrong 'onFence did not fire'; }

judge_successor() {
	local h took
	h=$(history_of "$1")
	took=$(takeover_of "$1")
	exit_status "${SUCCESSOR[$1]}"
	[ "$STATUS" = 0 ] || [ "$1" = etcdctl ] || wrong "the successor ended with status $STATUS"
	has "$h" successor acquire ok || wrong 'no other client was granted the lock'
	[ "$(event "$h" successor write ok t)" ] || wrong 'the successor could not write'
	[ "$(event "$h" successor "$took" ok t)" -lt "$(event "$h" holder continue ok t)" ] 2>/dev/null ||
		wrong "the successor's $took came only after the stopped holder had been resumed"
}

granted_after() { seconds_between "$(event "$1" holder stop ok t)" "$(event "$1" successor acquire ok t)"; }

refused_writes() { grep -c '"who":"holder","what":"write","phase":"no".*"code":"LF001"' "$1" || true; }

# The stopped holder's first error is that its connection is gone.
judge_preemption() {
	grep -q '"who":"holder","what":"write","phase":"no".*"code":"\(57P01\|08006\)"' "$1" ||
		{ wrong 'the fence did not end the open transaction'; return 1; }
}

# checker_rejects HISTORY REASON: what is sabotaged, the checker must find, for that reason.
checker_rejects() {
	local said
	said=$("$BUILD/pause-check" "$1") && wrong 'the checker found nothing wrong'
	grep -q "$2" <<<"$said" || wrong "the checker rejects it for another reason: ${said#*: }"
	echo "$said" >>"$OUT/checks.log"
}

# write_late HISTORY: a write that was on its way for long, under the first token of a lock that has had another since.
# False if there is no such lock yet.
write_late() {
	local lock token
	read -r lock token < <(jq -r 'select(.what == "present" and .phase == "ok") | "\(.lock) \(.token)"' "$1" |
		awk '!($1 in first) { first[$1] = $2 } $2 + 0 > first[$1] + 0 && !found { found = $1 } END { if (found) print found, first[found] }')
	[ "$token" ] || return 1
	"${unprivileged[@]}" "$BUILD/pause-writer" --scenario stale-write --resource "$lock" --token "$token" --dsn "$DSN" \
		--history "$1" --who "delayed-$((++DELAYED))" >>"$LOGS/delayed.log" 2>&1 || true
}
DELAYED=0

# How many of them PostgreSQL refused; each must be.
judge_late() {
	LATE=$(grep -c '"who":"delayed-[0-9]*","what":"write","phase":"no".*"code":"LF001"' "$1" || true)
	[ "$LATE" -ge 1 ] || wrong 'no delayed write was refused'
	! grep -q '"who":"delayed-[0-9]*","what":"write","phase":"ok"' "$1" || wrong 'a delayed write was accepted'
	LATE="delayed writes refused with LF001: $LATE"
}

# A variant without a fence: the stale write is accepted; both the writer and the checker must notice.
judge_control() {
	exit_status "${HOLDER[$1]}"
	[ "$STATUS" = 1 ] || wrong "the writer did not see its stale write accepted, but ended with status $STATUS"
	checker_rejects "$(history_of "$1")" 'below the mark'
	result "$PROOF" "$(variant_name "$1")" 'the stale write is accepted, and the checker rejects the history' \
		"$(seen 'accepted; the checker: write accepted although its token is below the mark')" "$(verdict)" "$(history_of "$1")"
}
