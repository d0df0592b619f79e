# Proof 2: the leader of the quorum is cut off while locks are being granted.
#
# Each member lives in a network namespace.  In each round the answers of the leader to the arbiter are
# dropped first, then its link goes down: it has done what it was asked in between, without an answer.

PARTITION_WRITERS=8 PARTITION_LOCKS=4

proof_2() {
	local h=$H1/2-partition.jsonl w writers=()
	if ! netns_possible; then
		result 2 'leader cut off while granting' 'no two holders; grants resume within 3 s' \
			"network namespaces cannot be created here: $NETNS_PROBLEM" 'not run'
		return 0
	fi
	say "proof 2: the leader is cut off, $ROUNDS times or until a grant was unanswered"
	netns_start
	service_start namespaces --etcd-timeout 500
	: >"$h"
	[ "$(id -u)" != 0 ] || chown postgres: "$h"
	for ((w = 1; w <= PARTITION_WRITERS; w++)); do
		spawn_as_user "2-writer-$w" "$BUILD/pause-writer" --scenario loop --resource cut --dsn "$DSN" \
			--history "$h" --who "client-$w" --url "$URL" --ca "$CERTS/ca.pem" --cert "$CERTS/client-$w.pem" \
			--key "$CERTS/client-$w.key" --ttl "$TTL" --wait 5 --seconds $((ROUNDS * 200)) --locks "$PARTITION_LOCKS" \
			--stop-file "$WORK/partition-over"
		writers+=("$LAST")
	done
	wait_until 60 grants_reach "$h" 20 || die 'the writers do not get going; see the logs'
	CUTS=0
	until [ "$CUTS" -ge "$ROUNDS" ] && { was_ambiguous || [ "$CUTS" -ge $((10 * ROUNDS)) ]; }; do
		cut_off_leader "$h"
		CUTS=$((CUTS + 1))
	done
	: >"$WORK/partition-over"
	for w in "${writers[@]}"; do wait_until 60 has_ended "$w" || kill_group "$w"; done
	rm -f "$WORK/partition-over"
	judge_partition "$h"
	service_stop
	netns_stop
}

# Was there an unanswered acquire that had been granted?  A cut may find none under way, so that there are more.
was_ambiguous() {
	call "$ADMIN" /v1/stats
	[ "$(field ambiguous_applied)" -ge 1 ]
}

# Waits for facts, not for time: a leader to cut, grants after the cut, grants after the healing.
cut_off_leader() {
	local h=$1 leader
	wait_until 30 leader_known || die 'etcd has no leader'
	leader=$LEADER
	note "$h" network mute ok member="m$leader"
	mute_member "$leader"
	sleep 0.1
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

leader_known() {
	LEADER=$(quorum_leader)
	[[ $LEADER =~ ^[1-3]$ ]]
}

wrong_partition() { note "$1" network stuck ok why="no grants within 30 s after the $2"; }

# The longest time between two grants in a row, of whatever lock, in microseconds.
longest_gap() {
	jq -r 'select(.what == "acquire" and .phase == "ok") | .t' "$1" | sort -n |
		awk 'NR > 1 && $1 - last > gap { gap = $1 - last } { last = $1 } END { print gap + 0 }'
}

judge_partition() {
	local h=$1 gap ambiguous applied text
	WRONG=()
	gap=$(longest_gap "$h")
	call "$ADMIN" /v1/stats
	ambiguous=$(field ambiguous)
	applied=$(field ambiguous_applied)
	note "$h" arbiter ambiguous ok n:="$ambiguous" applied:="$applied"
	text="$CUTS cuts, $(grants "$h") grants, longest gap $(seconds_between 0 "$gap") s"
	text="$text; $ambiguous acquires unanswered by etcd, $applied of them found granted"
	[ "$gap" -le 3000000 ] || wrong 'no grant for more than 3 s'
	[ "$ambiguous" -ge 1 ] || wrong 'no acquire was ambiguous'
	[ "$applied" -ge 1 ] || wrong 'no unanswered acquire had been granted'
	! has "$h" network stuck ok || wrong 'the service did not recover from a cut'
	check_history "$h"
	result 2 'leader cut off while granting' \
		'no history with two holders; grants resume within 3 s; at least one acquire is ambiguous' \
		"$(seen "$text; $CHECKED")" "$(verdict)"
}
