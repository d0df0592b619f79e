# Proof 3: the quorum is destroyed and an old snapshot restored.
#
# What was granted after the snapshot is forgotten by etcd, and what was released after it is held again.
# Nothing may be granted, renewed or called valid until an operator advances the epoch; the first token
# after that is above every token ever issued.  Four disasters, each after the other.
#
# In each, a holder that never came to write wakes up: its hold, which had ended, is back with the snapshot, and
# PostgreSQL has seen no higher token.  Only a validator keeps such a write out.

# Long enough that no lease lapses meanwhile: a restored one starts anew.
SESSION_TTL=60

proof_3() {
	local h=$H1/3-restore.jsonl
	say 'proof 3: an old snapshot is restored'
	H3=$h REQUESTS=0 HIGHEST=0
	: >"$h"
	[ "$(id -u)" != 0 ] || chown postgres: "$h"
	service_start loopback
	VALIDATOR=
	! validator_start || VALIDATOR=1
	live_through 'first'
	take_snapshot
	live_through 'after the snapshot'
	disaster 'restored as a new cluster' "other-$$"
	live_through 'after the first restore'
	take_snapshot
	live_through 'after the second snapshot'
	disaster 'restored under the same cluster token' "other-$$"
	live_through 'after the second restore'
	disaster 'the same snapshot restored again' "other-$$"
	live_through 'after the third restore'
	disaster 'restored, and the arbiter lost its memory' "other-$$" forget
	service_stop
	WRONG=()
	check_history "$h"
	result 3 'the whole history' 'one lock, one fence, through four disasters' "$(seen "$CHECKED")" "$(verdict)"
}

# ---- a client, in shell --------------------------------------------------------------------------

open_session() {
	local sent
	sent=$("$BUILD/pause-note" -)
	call a /v1/session "{\"ttl\":$SESSION_TTL}"
	SESSION=$(field session)
	[ -z "$SESSION" ] || note "$H3" a session ok session="$SESSION" sent:="$sent" ttl:="${SESSION_TTL}000000"
}

# try_acquire LOCK: leaves the token in TOKEN, empty if it was not granted.
try_acquire() {
	local id=a-$((++REQUESTS)) phase=no
	note "$H3" a acquire call id="$id" lock="$1"
	call a /v1/acquire "{\"session\":\"$SESSION\",\"resource\":\"$1\",\"request\":\"$id\",\"wait_ms\":2000}"
	TOKEN=$(field token)
	[ -z "$TOKEN" ] || phase=ok
	note "$H3" a acquire "$phase" id="$id" lock="$1" token="${TOKEN:-0}" session="$SESSION" code="$CALL_CODE"
}

release_lock() {
	local id=a-$((++REQUESTS)) phase=no
	note "$H3" a release call id="$id" lock="$1" token="$2"
	call a /v1/release "{\"session\":\"$SESSION\",\"resource\":\"$1\",\"token\":\"$2\"}"
	[ "$CALL_STATUS" != 200 ] || phase=ok
	note "$H3" a release "$phase" id="$id" lock="$1" token="$2"
}

# writes LOCK TOKEN SCENARIO [OPTION...]: WROTE is accepted, or the SQLSTATE of the refusal.
writes() {
	local who=a-$((++REQUESTS))
	"${unprivileged[@]}" "$BUILD/pause-writer" --scenario "$3" --resource "$1" --token "$2" --dsn "$DSN" \
		--history "$H3" --who "$who" "${@:4}" >>"$LOGS/3-writer.log" 2>&1 || true
	WROTE=$(event "$H3" "$who" write no code)
	! has "$H3" "$who" write ok || WROTE=accepted
}

# To the table whose fence asks the validator.
writes_validated() { writes "$1" "$2" stale-write --account pause_kit.validated --validated; }

# ---- life, and its end ---------------------------------------------------------------------------

# Grants, writes and releases; two locks stay held.
live_through() {
	local l
	open_session
	[ -n "$SESSION" ] || die "no session: $CALL_BODY"
	for l in 1 2 3 4; do
		try_acquire "restore-$l"
		[ -n "$TOKEN" ] || die "restore-$l was not granted $1: $CALL_BODY"
		writes "restore-$l" "$TOKEN" write
		[ "$WROTE" = accepted ] || die "the write of restore-$l was not accepted $1"
		HELD[l]=$TOKEN
		[ "$TOKEN" -le "$HIGHEST" ] || HIGHEST=$TOKEN
	done
}

take_snapshot() {
	fall_asleep
	SNAPSHOT_ID=snapshot-$((++REQUESTS))
	SNAPSHOT=$WORK/$SNAPSHOT_ID.db
	ETCDCTL_API=3 etcdctl --endpoints "${CLIENT_URL[1]}" snapshot save "$SNAPSHOT" >>"$LOGS/restore.log" 2>&1
	[ "$(id -u)" != 0 ] || chown postgres: "$SNAPSHOT"
	note "$H3" etcd snapshot ok snapshot="$SNAPSHOT_ID"
	REVIVED_SESSION=$SESSION REVIVED_TOKEN=${HELD[1]}
	let_go
}

# Two locks are taken, and nothing is written under them yet.
fall_asleep() {
	local l
	for l in 6 7; do
		try_acquire "restore-$l"
		[ -n "$TOKEN" ] || die "restore-$l was not granted: $CALL_BODY"
		HELD[l]=$TOKEN
		[ "$TOKEN" -le "$HIGHEST" ] || HIGHEST=$TOKEN
	done
}

# What was held at the snapshot is released after it.
let_go() {
	local l
	for l in 1 2 3 4 6 7; do release_lock "restore-$l" "${HELD[l]}"; done
}

# disaster NAME TOKEN [forget]: locks restore-3 and -4 were released before it, 1 and 2 are held.
disaster() {
	local before after sealed old_token=${HELD[1]} disastrous woken
	WRONG=()
	release_lock restore-3 "${HELD[3]}"
	release_lock restore-4 "${HELD[4]}"
	before=$(cluster_id)
	[ -z "${3-}" ] || arbiter_stop
	note "$H3" etcd destroy ok why="$1" snapshot="$SNAPSHOT_ID"
	quorum_destroy
	quorum_restore "$SNAPSHOT" "$2"
	note "$H3" etcd restore ok why="$1"
	after=$(cluster_id)
	if [ -n "${3-}" ]; then rm -f "$WORK/arbiter.state"; arbiter_start; fi
	everything_is_sealed "$REVIVED_SESSION" "$REVIVED_TOKEN"
	call "$ADMIN" /v1/stats
	sealed=$(field sealed_because)
	: "${sealed:=it is not sealed}"
	disastrous=("${WRONG[@]}") WRONG=()
	sleepers_wake "$1"
	woken=("${WRONG[@]}") WRONG=("${disastrous[@]}")
	advance_the_epoch
	first_grant_after "$old_token" "$REVIVED_SESSION"
	result 3 "$1" 'sealed until the epoch advances; the first token is above every one before' \
		"$(seen "$(cluster_words "$before" "$after"): $sealed; $FIRST_WORDS")" "$(verdict)" "$H3"
	WRONG=("${woken[@]}")
	sleeper_is_refused "$1"
	note "$H3" operator settled ok
}

# Whether etcd, as it was restored, says that a lock is held by this token, under a lease that is alive.  The
# lease's number is too long for jq.
held_again() {
	local kv epoch lease ttl
	kv=$(ectl get "/lock/$1" -w json)
	epoch=$(ectl get /sys/epoch --print-value-only | jq .epoch)
	lease=$(sed -n 's/.*"lease":\([0-9]*\).*/\1/p' <<<"$kv")
	ttl=$(ectl lease timetolive "$(printf %x "$lease")" -w json | jq .ttl)
	[ $(((epoch << 48) + $(jq '.kvs[0].create_revision' <<<"$kv"))) = "$2" ] && [ "$ttl" -gt 0 ]
}

# While the service is sealed: one sleeper's table asks, and the other's does not.
sleepers_wake() {
	local asked control
	WOKEN=
	[ -n "$VALIDATOR" ] || return 0
	held_again restore-6 "${HELD[6]}" || wrong 'etcd does not hold the sleeper'"'"'s lock again'
	writes_validated restore-6 "${HELD[6]}"
	asked=$WROTE
	[ "$asked" = LF008 ] || wrong "with a validator, the sleeper's write was answered $asked and not LF008"
	[ "$(mark_of restore-6)" != "${HELD[6]}" ] || wrong 'a refused write raised the mark'
	writes restore-7 "${HELD[7]}" stale-write
	control=$WROTE
	[ "$control" = accepted ] || wrong "without a validator the same write was answered $control, so this proves nothing"
	WOKEN="sealed: $asked (without a validator: $control)"
}

# Once the epoch has advanced the service answers again, and says no; a new holder's token is good.
sleeper_is_refused() {
	local old fresh
	[ -n "$VALIDATOR" ] || return 0
	writes_validated restore-6 "${HELD[6]}"
	old=$WROTE
	[ "$old" = LF007 ] || wrong "after the advance, the sleeper's write was answered $old and not LF007"
	try_acquire restore-8
	writes_validated restore-8 "${TOKEN:-1}"
	fresh=$WROTE
	[ "$fresh" = accepted ] || wrong "a new holder's write was answered $fresh"
	[ -z "$TOKEN" ] || release_lock restore-8 "$TOKEN"
	[ "${TOKEN:-0}" -le "$HIGHEST" ] || HIGHEST=$TOKEN
	result 3 "$1, with a validator" \
		"the token of a stopped holder, which the restored service takes for held, is refused: LF008 while sealed, LF007 afterwards" \
		"$(seen "$WOKEN; afterwards: $old")" "$(verdict)"
}

cluster_words() { if [ "$1" = "$2" ]; then echo 'same cluster id'; else echo 'another cluster id'; fi; }

must_be_sealed() { [ "$CALL_CODE" = sealed ] || wrong "$1 was answered ${CALL_STATUS} ${CALL_CODE:-$CALL_BODY}"; }

# everything_is_sealed SESSION TOKEN: of the snapshot.  The session's lease has come back to life with its full time, and
# so have its locks.
everything_is_sealed() {
	call a /v1/renew "{\"session\":\"$1\"}"
	must_be_sealed renew
	call a /v1/validate "{\"resource\":\"restore-1\",\"token\":\"$2\"}"
	must_be_sealed validate
	SESSION=$1
	try_acquire restore-3
	must_be_sealed acquire
	try_acquire restore-5
	must_be_sealed 'acquire of a lock never taken'
	call b /v1/session "{\"ttl\":$SESSION_TTL}"
	must_be_sealed session
	call a /v1/describe '{"resource":"restore-1"}'
	must_be_sealed describe
	note "$H3" arbiter sealed ok
}

# Only for an administrator, with a reason, to an epoch that was never used; the lock in the snapshot is back.
advance_the_epoch() {
	local id=op-$((++REQUESTS)) used=$((HIGHEST >> 48))
	call b /v1/advance-epoch '{"reason":"I want to"}'
	[ "$CALL_CODE" = not_admin ] || wrong 'a client that is no administrator advanced the epoch'
	call "$ADMIN" /v1/advance-epoch '{}'
	[ "$CALL_CODE" = no_reason ] || wrong 'the epoch advanced without a reason'
	call "$ADMIN" /v1/advance-epoch "{\"epoch\":$used,\"reason\":\"too low\"}"
	[ "$CALL_CODE" = epoch_too_low ] || wrong "epoch $used was used before and taken again"
	[ -n "$(ectl get /lock/restore-3 --keys-only)" ] || wrong 'the snapshot has no lock that was released since'
	note "$H3" operator drop call id="$id" lock='*'
	call "$ADMIN" /v1/advance-epoch '{"reason":"restored from a snapshot"}'
	[ "$CALL_STATUS" = 200 ] || wrong "the epoch did not advance: $CALL_BODY"
	note "$H3" operator drop ok id="$id" lock='*'
	note "$H3" operator epoch ok n:="$(field epoch)"
	[ -z "$(ectl get --prefix /lock/ --keys-only)" ] || wrong 'the advance left a lock held'
}

# first_grant_after TOKEN SESSION: a token of before the disaster, and the session of the snapshot.
first_grant_after() {
	local first
	FIRST_WORDS='nothing was granted afterwards'
	call a /v1/renew "{\"session\":\"$2\"}"
	[ "$CALL_CODE" = session_gone ] || wrong 'a session from before the disaster lives on'
	open_session
	try_acquire restore-1
	first=${TOKEN:-0}
	[ "$first" -gt "$HIGHEST" ] || wrong "the first token $first is not above $HIGHEST"
	[ "$first" -gt 0 ] || return 0
	writes restore-1 "$first" write
	[ "$WROTE" = accepted ] || wrong 'the new holder could not write'
	writes restore-1 "$1" stale-write
	[ "$WROTE" = LF001 ] || wrong "a write with an earlier token was ${WROTE/#LF/answered LF}"
	release_lock restore-1 "$first"
	FIRST_WORDS="first token (epoch $((first >> 48)), revision $((first & (1 << 48) - 1))) above the highest before (epoch $((HIGHEST >> 48)), revision $((HIGHEST & (1 << 48) - 1))); a write with an earlier token: $WROTE"
	HIGHEST=$first
}
