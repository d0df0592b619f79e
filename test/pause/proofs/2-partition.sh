# Proof 2: the leader of the quorum is cut off while locks are being granted.
#
# Each member lives in a network namespace.  In each round a grant waits at the arbiter's gate until the leader's
# answers to the arbiter are dropped: the leader does what it is asked, without an answer.  Then its link goes down.

PARTITION_WRITERS=8 PARTITION_LOCKS=4

proof_2() {
	local h=$H1/2-partition.jsonl w writers=()
	GATE=$WORK/gate-2
	if ! netns_possible; then
		result 2 'leader cut off while granting' 'no two holders; grants resume within 3 s' \
			"network namespaces cannot be created here: $NETNS_PROBLEM" 'not run'
		return 0
	fi
	say "proof 2: the leader is cut off, $ROUNDS times"
	netns_start
	begin_history "$h"
	service_start namespaces --etcd-timeout 500 --history "$h" --gate "$GATE"
	for ((w = 1; w <= PARTITION_WRITERS; w++)); do
		spawn_as_user "2-writer-$w" "$BUILD/pause-writer" --scenario loop --resource cut --dsn "$DSN" \
			--history "$h" --who "client-$w" --url "$URL" --ca "$CERTS/ca.pem" --cert "$CERTS/client-$w.pem" \
			--key "$CERTS/client-$w.key" --ttl "$TTL" --wait 5 --seconds $((ROUNDS * 200)) --locks "$PARTITION_LOCKS" \
			--stop-file "$WORK/partition-over"
		writers+=("$LAST")
	done
	wait_until 60 grants_reach "$h" 20 || die 'the writers do not get going; see the logs'
	CUTS=0
	until [ "$CUTS" -ge "$ROUNDS" ] && { has "$h" arbiter found ok || [ "$CUTS" -ge $((10 * ROUNDS)) ]; }; do
		cut_off_leader "$h"
		CUTS=$((CUTS + 1))
		wait_until 30 write_late "$h" || true
	done
	: >"$WORK/partition-over"
	for w in "${writers[@]}"; do wait_until 60 has_ended "$w" || kill_group "$w"; done
	rm -f "$WORK/partition-over"
	judge_partition "$h"
	service_stop
	netns_stop
}

# Waits for facts, not for time: a leader to cut, a grant that it did not answer, grants after the cut, grants after
# the healing.
cut_off_leader() {
	local h=$1 leader
	wait_until 30 leave_unanswered "$h" || wrong_partition "$h" mute
	leader=$LEADER
	cut_member "$leader"
	note "$h" network cut ok member="m$leader"
	wait_until 30 grants_reach "$h" $(($(grants "$h") + 30)) || wrong_partition "$h" cut
	sleep 2
	unmute_members
	heal_member "$leader"
	note "$h" network heal ok member="m$leader"
	wait_until 30 grants_reach "$h" $(($(grants "$h") + 30)) || wrong_partition "$h" healing
	sleep 2
}

# leave_unanswered HISTORY: from the leader, whose answers are dropped when it returns true.  The arbiter may be asking
# another member just then, which answers: then it is tried again.
leave_unanswered() {
	local before
	before=$(count_of "$1" unanswered)
	wait_until 30 leader_known || die 'etcd has no leader'
	grant_at_gate "$1"
	note "$1" network mute ok member="m$LEADER"
	mute_member "$LEADER"
	rm -f "$GATE"
	! wait_until 3 more_than "$before" "$1" unanswered || return 0
	unmute_members
	note "$1" network unmute ok member="m$LEADER"
	return 1
}

grant_at_gate() {
	local before
	before=$(count_of "$1" gate)
	as_user touch "$GATE"
	wait_until 30 more_than "$before" "$1" gate || { rm -f "$GATE"; die 'no client asks for a lock; see the logs'; }
}

count_of() { grep -c "\"who\":\"arbiter\",\"what\":\"$2\"" "$1" || true; }
more_than() { [ "$(count_of "$2" "$3")" -gt "$1" ]; }

leader_known() {
	LEADER=$(quorum_leader)
	[[ $LEADER =~ ^[1-3]$ ]]
}

wrong_partition() { note "$1" network stuck ok why="nothing within 30 s after the $2"; }

# The longest time between two grants in a row, of whatever lock, in microseconds; then the longest while nothing was cut,
# which tells how busy the machine is.
longest_gaps() {
	jq -r 'select((.what == "acquire" and .phase == "ok") or .who == "network") | "\(.t) \(.what)"' "$1" | sort -n |
		awk '$2 != "acquire" { cut = $2 ~ /^(mute|cut)$/; after = 0; next }
			last && $1 - last > gap { gap = $1 - last }
			last && !cut && after++ && $1 - last > quiet { quiet = $1 - last }
			{ last = $1 } END { printf "%.0f %.0f\n", gap, quiet }'
}

judge_partition() {
	local h=$1 gap quiet ambiguous applied text
	WRONG=()
	read -r gap quiet < <(longest_gaps "$h")
	ambiguous=$(count_of "$h" unanswered)
	applied=$(count_of "$h" found)
	text="leader cuts: $CUTS; grants: $(grants "$h"), the longest gap $(seconds_between 0 "$gap") s, and $(seconds_between 0 "$quiet") s while nothing was cut"
	text="$text; acquires unanswered by etcd: $ambiguous, of which found granted: $applied"
	[ "$gap" -le $((3000000 + 2 * quiet)) ] || wrong 'no grant for more than 3 s'
	[ "$ambiguous" -ge 1 ] || wrong 'no acquire was ambiguous'
	[ "$applied" -ge 1 ] || wrong 'no unanswered acquire had been granted'
	! has "$h" network stuck ok || wrong 'the service did not recover from a cut'
	judge_late "$h"
	check_history "$h"
	result 2 'leader cut off while granting' \
		'no history with two holders; grants resume within 3 s; at least one acquire is ambiguous; a delayed write is refused' \
		"$(seen "$text; $LATE; $CHECKED")" "$(verdict)" "$h"
}
