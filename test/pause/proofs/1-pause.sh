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

start_client_1() {
	local v=$1 who=$2 history scenario=$3
	history=$(history_of "$v")
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

judge_1() {
	local v=$1 h took text
	WRONG=()
	if [ "$v" = control ]; then judge_control "$v"; return; fi
	h=$(history_of "$v")
	judge_holder "$v"
	[ "$v" = etcdctl ] || judge_fence "$v"
	judge_successor "$v"
	took=$(milliseconds "$(event "$h" successor present ok took)")
	text="successor granted after $(granted_after "$h") s, took over in $took ms"
	text="$text; writes refused with LF001: $(refused_writes "$h")"
	if [ "$v" = open-held ]; then judge_preemption "$h" && text="$text, after the fence ended its transaction"; fi
	if [ "$v" != etcdctl ]; then text="$text; onFence fired"; fi
	check_history "$h"
	result 1 "$(variant_name "$v")" "$(expected_1 "$v")" "$(seen "$text; $CHECKED")" "$(verdict)" "$h"
}

expected_1() {
	local text="another holder is granted the lock while it is stopped for $STOP s; its write is refused with LF001"
	[ "$1" = etcdctl ] || text="$text; onFence fires"
	[ "$1" != open-held ] || text="$text; its open transaction does not delay the successor"
	echo "$text"
}
