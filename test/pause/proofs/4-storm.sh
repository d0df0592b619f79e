# Proof 4: every client is killed at once, and all are started again.
#
# Each has a session, a certificate and a lock of its own.  The dead clients' locks are held until their leases
# lapse; meanwhile the new clients ask again and again.  The service sheds those requests, never a renewal.

SWARM_SIZE=100		# clients per process
STORM_LIMIT=240		# seconds until every client must hold a lock again

proof_4() {
	local h=$H1/4-storm.jsonl start restarted settled
	say "proof 4: $CLIENTS clients are killed at once"
	STORM=$h
	: >"$h"
	[ "$(id -u)" != 0 ] || chown postgres: "$h"
	ACQUIRES=4 RETRY_AFTER=4 service_start loopback
	start=$("$BUILD/pause-note" -)
	start_swarm first
	wait_until "$STORM_LIMIT" holding first || die "only $(held first) of $CLIENTS clients got a lock; see the logs"
	say "proof 4: all hold a lock after $(seconds_between "$start" "$("$BUILD/pause-note" -)") s"
	sleep "$STORM_TTL"				# every one renews a few times
	kill_swarm
	restarted=$("$BUILD/pause-note" -)
	start_swarm second
	settled=
	if wait_until "$STORM_LIMIT" holding second; then settled=$("$BUILD/pause-note" -); fi
	sleep "$STORM_TTL"
	call "$ADMIN" /v1/stats
	end_swarm
	wait_until 30 write_late "$h" || true
	record_shed
	judge_storm "$h" "$restarted" "$settled"
	service_stop
}

# start_swarm GENERATION
start_swarm() {
	local first size
	SWARM=()
	note "$STORM" "$1" start ok n:="$CLIENTS"
	for ((first = 1; first <= CLIENTS; first += SWARM_SIZE)); do
		size=$((CLIENTS - first + 1 < SWARM_SIZE ? CLIENTS - first + 1 : SWARM_SIZE))
		spawn_as_user "4-$1" "$BUILD/pause-swarm" --url "$URL" --certs "$CERTS" --dsn "$DSN" --locks storm \
			--history "$STORM" --generation "$1" --first "$first" --clients "$size" --ttl "$STORM_TTL"
		SWARM+=("$LAST")
	done
}

# In one signal each, as a power cut does it.
kill_swarm() {
	local p
	{						# the shell would tell of each
		for p in "${SWARM[@]}"; do kill -KILL -- "-$p"; done
		note "$STORM" first kill ok n:="$CLIENTS"
		for p in "${SWARM[@]}"; do wait "$p" || true; done
	} 2>/dev/null
}

end_swarm() {
	local p
	for p in "${SWARM[@]}"; do kill -TERM "$p"; done
	for p in "${SWARM[@]}"; do wait_until 60 has_ended "$p" || kill_group "$p"; done
}

# How many clients of a generation hold their lock now: granted, and not fenced since.
held() {
	grep -E "\"who\":\"$1-[0-9]*\",\"what\":\"(acquire\",\"phase\":\"ok|fence)\"" "$STORM" |
		awk -F '"' '{ who = $6 } $10 == "fence" { delete holds[who]; next } { holds[who] }
			END { n = 0; for (who in holds) n++; print n }'
}
holding() { sleep 0.5; [ "$(held "$1")" -ge "$CLIENTS" ]; }

# A request nginx answered with 5xx; 499 is a client that was killed while it asked.
shed() { awk -v path="$1" '$2 == path && $3 >= 500' "$WORK/nginx/shed.log" 2>/dev/null | wc -l; }

# What nginx shed, in the history; it logs by the clock on the wall.
record_shed() {
	local wall boot
	wall=$(date +%s%6N) boot=$("$BUILD/pause-note" -)
	[ ! -f "$WORK/nginx/shed.log" ] || awk -v ahead=$((wall - boot)) '$3 >= 500 {
		printf "{\"t\":%.0f,\"who\":\"nginx\",\"what\":\"shed\",\"phase\":\"ok\",\"path\":\"%s\"}\n", $1 * 1e6 - ahead, $2 }' \
		"$WORK/nginx/shed.log" >>"$STORM"
}

total() { jq -s --arg w "$1" --arg f "$2" 'map(select(.what == "totals" and .who == $w) | .[$f]) | add // 0' "$STORM"; }

judge_storm() {
	local h=$1 text
	WRONG=()
	if [ -n "$3" ]; then
		text="all $CLIENTS hold their locks again after $(seconds_between "$2" "$3") s"
	else
		text="only $(held second) of $CLIENTS hold a lock after $STORM_LIMIT s"
		wrong 'not every client got its lock'
	fi
	text="$text; $(grep -c '"what":"renew","phase":"ok"' "$h" || true) renewals answered, $(shed /v1/renew) shed"
	text="$text, $(total second failed) late; $(grep -c '"what":"fence"' "$h" || true) holders fenced"
	text="$text; $(($(shed /v1/acquire) + $(shed /v1/session))) acquires and sessions shed"
	[ "$(shed /v1/renew)" = 0 ] || wrong 'nginx shed renewals'
	[ "$(field renewals_failed)" = 0 ] || wrong "the arbiter failed $(field renewals_failed) renewals"
	[ "$(total second shed)" = 0 ] || wrong 'clients saw renewals shed'
	judge_late "$h"
	check_history "$h"
	result 4 'all clients killed and started again' \
		'every client holds a lock again; not one renewal is shed; a delayed write is refused' \
		"$(seen "$text; $LATE; $CHECKED")" "$(verdict)" "$h"
}
