# Proof 5: the same pauses with no lock service but PostgreSQL, by leases of lockfence_lease.
#
# The grant is the takeover, so that one variant more can be tried: a successor that has done nothing but acquire.
# Two controls sabotage it: with the fence bypassed the stale write is accepted, and where a living lease is
# cut short by hand two hold it at once.  The checker must find both.

TURNS_CLIENTS=4 TURNS_GRANTS=60

proof_5() {
	local v variants=(between open-read open-held idle)
	say "proof 5: pauses of $STOP s with a lease of $TTL s in PostgreSQL"
	sql 'CREATE EXTENSION IF NOT EXISTS lockfence_lease' >/dev/null 2>>"$LOGS/extension.log" ||
		{ cat "$LOGS/extension.log" >&2; die 'lockfence_lease cannot be created in that database'; }
	if [ -n "$TABLE" ]; then
		for v in "${variants[@]}"; do pause_variants "$v"; done
		return
	fi
	[ -z "$OWN_CLUSTER" ] || variants+=(bypass cut-short)	# both take a superuser
	pause_variants "${variants[@]}"
	take_turns
}

start_client_5() {
	local v=$1 who=$2 scenario=$3 ttl=$TTL
	case $scenario in idle | bypass | cut-short) scenario=between ;; esac
	writer_args "$v" "$who" "$scenario" "$4"
	[ "$v" != cut-short ] || ttl=600
	[ "$v-$who" != bypass-holder ] || W+=(--dsn "$DSN options='-c lockfence.bypass=on'")
	spawn_as_user "5-$v-$who" "${W[@]}" --leases --ttl "$ttl" --wait $((STOP + 60))
}

# The lease of a holder that is stopped ends before its time, as by a clock that jumps.
cut_short() {
	[[ " ${VARIANTS[*]} " != *' cut-short '* ]] ||
		sql "UPDATE lockfence.lease SET expires_at = now() WHERE resource = 'pause:cut-short'"
}

judge_5() {
	local v=$1 h text
	h=$(history_of "$v")
	WRONG=()
	if [ "$v" = bypass ]; then judge_control "$v"; return; fi
	judge_holder "$v"
	judge_successor "$v"
	if [ "$v" = cut-short ]; then judge_cut_short "$h"; return; fi
	judge_fence "$v"
	text="successor granted after $(granted_after "$h") s; writes refused with LF001: $(refused_writes "$h")"
	if [ "$v" = open-held ]; then judge_preemption "$h" && text="$text, after the fence ended its transaction"; fi
	if [ "$v" = idle ]; then judge_idle "$h" && text="$text, before the successor presented or wrote anything"; fi
	check_history "$h"
	result 5 "$(variant_name "$v")" "$(expected_5 "$v")" "$(seen "$text; onFence fired; $CHECKED")" "$(verdict)" "$h"
}

expected_5() {
	local text="another holder is granted the lease while it is stopped for $STOP s; its write is refused with LF001"
	text="$text; onFence fires"
	[ "$1" != open-held ] || text="$text; its open transaction does not delay the successor"
	[ "$1" != idle ] || text="$text; the acquire alone has put it out"
	echo "$text"
}

judge_idle() {
	[ "$(event "$1" successor write call t)" -gt "$(event "$1" holder write no t)" ] 2>/dev/null ||
		{ wrong 'the successor had begun to write'; return 1; }
}

judge_cut_short() {
	checker_rejects "$1" 'granted while another still held the lock'
	result 5 "$(variant_name cut-short)" 'the stale write is refused all the same; the checker finds two holders' \
		"$(seen "writes refused with LF001: $(refused_writes "$1"); the checker: granted while another still held the lock")" \
		"$(verdict)" "$1"
}

# Clients that take one lease from each other, as fast as they can.
take_turns() {
	local h w clients=()
	h=$(history_of turns)
	begin_history "$h"
	rm -f "$WORK/turns-over"
	for ((w = 1; w <= TURNS_CLIENTS; w++)); do
		spawn_as_user "5-turns-$w" "$BUILD/pause-writer" --scenario loop --resource pause:turns --dsn "$DSN" --leases \
			--history "$h" --who "client-$w" --ttl "$TTL" --wait 5 --seconds 600 --locks 1 --stop-file "$WORK/turns-over"
		clients+=("$LAST")
	done
	wait_until 300 grants_reach "$h" "$TURNS_GRANTS" || true
	: >"$WORK/turns-over"
	for w in "${clients[@]}"; do wait_until 60 has_ended "$w" || kill_group "$w"; done
	write_late "$h" || true
	judge_turns "$h"
}

judge_turns() {
	WRONG=()
	[ "$(grants "$1")" -ge "$TURNS_GRANTS" ] || wrong "there are fewer than $TURNS_GRANTS grants"
	[ "$(jq -r 'select(.what == "acquire" and .phase == "ok") | .who' "$1" | sort -u | wc -l)" -ge 2 ] ||
		wrong 'one client had them all'
	judge_late "$1"
	check_history "$1"
	result 5 'clients that take one lease in turn' 'no history with two holders; the tokens of accepted writes never go down; a delayed write is refused' \
		"$(seen "$(grants "$1") grants to $TURNS_CLIENTS clients; $LATE; $CHECKED")" "$(verdict)" "$1"
}
