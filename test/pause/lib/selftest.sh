# The tests of the kit's own parts: the checker, the lock service, the holder library.  Sourced by run.

# Needs the database.
self_test() {
	checker_tests
	quorum_plan loopback
	quorum_start "test-$$"
	arbiter_start --max-acquires 4
	front_start
	service_tests
	validator_tests
	holder_tests
	service_stop
}

checker_tests() {
	"${unprivileged[@]}" "$BUILD/pause-check-test" >"$LOGS/checker.log" 2>&1 || true
	adopt <"$LOGS/checker.log"
	check "the checker's tests come to their end" grep -q '^1\.\.' "$LOGS/checker.log"
}

# is NAME SEEN EXPECTED
is() {
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "$2 instead of $3"; fi
}

# answers NAME STATUS CODE WHO PATH JSON
answers() {
	call "$4" "$5" "$6"
	is "$1" "$CALL_STATUS $CALL_CODE" "$2 $3"
}

# ---- the lock service ----------------------------------------------------------------------------

service_tests() {
	local s first second
	answers 'a cluster without an epoch serves nothing' 503 sealed a /v1/session '{"ttl":10}'
	answers 'the first epoch needs an administrator' 403 not_admin a /v1/advance-epoch '{"reason":"x"}'
	answers 'the first epoch needs a reason' 400 no_reason "$ADMIN" /v1/advance-epoch '{}'
	answers 'an administrator begins the first epoch' 200 '' "$ADMIN" /v1/advance-epoch '{"reason":"test"}'
	answers 'an epoch comes once' 409 epoch_too_low "$ADMIN" /v1/advance-epoch '{"reason":"test","epoch":1}'

	answers 'a session is opened' 200 '' a /v1/session '{"ttl":600}'
	s=$(field session)
	answers 'a session of no time is not' 400 bad_ttl a /v1/session '{"ttl":0}'
	answers 'a lock is granted' 200 '' a /v1/acquire "{\"session\":\"$s\",\"resource\":\"x/1\",\"request\":\"r1\"}"
	first=$(field token)
	answers 'asked again, it is the same grant' 200 '' a /v1/acquire "{\"session\":\"$s\",\"resource\":\"x/1\",\"request\":\"r1\"}"
	is 'with the same token' "$(field token)" "$first"
	answers 'another request of the session is refused' 409 held a /v1/acquire "{\"session\":\"$s\",\"resource\":\"x/1\",\"request\":\"r2\"}"
	answers 'a session belongs to one identity' 403 not_yours b /v1/acquire "{\"session\":\"$s\",\"resource\":\"x/2\",\"request\":\"r3\"}"
	answers 'and so does its renewal' 403 not_yours b /v1/renew "{\"session\":\"$s\"}"
	answers 'it is renewed' 200 '' a /v1/renew "{\"session\":\"$s\"}"
	answers 'a session that never was cannot be' 410 session_gone a /v1/renew '{"session":"12345"}'
	answers 'a token is valid' 200 '' b /v1/validate "{\"resource\":\"x/1\",\"token\":\"$first\"}"
	is 'and said to be' "$(jq -c '[.resource, .token, .valid, (.expires_in_ms > 0)]' <<<"$CALL_BODY")" "[\"x/1\",\"$first\",true,true]"
	answers 'validate is asked by GET as well' 200 '' b "/v1/validate?resource=x%2F1&token=$first" ''
	is 'with the same answer' "$(field valid)" true
	answers 'a token one higher is not valid' 200 '' b /v1/validate "{\"resource\":\"x/1\",\"token\":\"$((first + 1))\"}"
	is 'and said not to be' "$(field valid)" false
	answers 'only the right token releases' 409 not_held a /v1/release "{\"session\":\"$s\",\"resource\":\"x/1\",\"token\":\"$((first + 1))\"}"
	answers 'a lock is released' 200 '' a /v1/release "{\"session\":\"$s\",\"resource\":\"x/1\",\"token\":\"$first\"}"
	answers 'once' 409 not_held a /v1/release "{\"session\":\"$s\",\"resource\":\"x/1\",\"token\":\"$first\"}"
	answers 'it is granted again' 200 '' a /v1/acquire "{\"session\":\"$s\",\"resource\":\"x/1\",\"request\":\"r4\"}"
	second=$(field token)
	is 'with a higher token' "$([ "$second" -gt "$first" ] && echo higher)" higher
	answers 'it is described' 200 '' b /v1/describe '{"resource":"x/1"}'
	is 'with its holder' "$(field holder)" a

	answers 'force-release is for administrators' 403 not_admin a /v1/force-release '{"resource":"x/1","reason":"r"}'
	answers 'and for a reason' 400 no_reason "$ADMIN" /v1/force-release '{"resource":"x/1"}'
	answers 'a lock is released by force' 200 '' "$ADMIN" /v1/force-release '{"resource":"x/1","reason":"the holder is lost"}'
	is 'which the audit log tells' "$(jq -c 'select(.action == "force-release") | [.who, .resource, .reason, .before.token]' "$WORK/audit.log")" \
		"[\"$ADMIN\",\"x/1\",\"the holder is lost\",\"$second\"]"
	answers 'a lock without a holder cannot be' 404 not_held "$ADMIN" /v1/force-release '{"resource":"x/1","reason":"again"}'

	answers 'a token is a string' 400 bad_number a /v1/release "{\"session\":\"$s\",\"resource\":\"x/1\",\"token\":$first}"
	answers 'a name has no control characters' 400 bad_resource a /v1/describe '{"resource":"a\u000ab"}'
	answers 'there is nothing else' 404 no_such_endpoint a /v1/../etc '{}'
	crowd_is_shed "$s"
}

files_in() { [ "$(find "$1" -type f -size +0 | wc -l)" -ge "$2" ]; }

# Four acquires may wait at once; of ten, some are told when to come again, and a renewal is not.
crowd_is_shed() {
	local i pids=() dir=$WORK/crowd
	mkdir -p "$dir"
	call a /v1/acquire "{\"session\":\"$1\",\"resource\":\"x/crowd\",\"request\":\"r0\"}"
	for i in 1 2 3 4 5 6 7 8 9 10; do
		(call a /v1/acquire "{\"session\":\"$1\",\"resource\":\"x/crowd\",\"request\":\"c$i\",\"wait_ms\":8000}"
			echo "$CALL_STATUS $CALL_CODE" >"$dir/$i") &
		pids+=($!)
	done
	wait_until 30 files_in "$dir" 6 || true
	answers 'a renewal is answered while acquires are shed' 200 '' a /v1/renew "{\"session\":\"$1\"}"
	wait "${pids[@]}" || true
	is 'of ten acquires at once, six are shed' "$(cat "$dir"/* | sort | uniq -c | sed 's/^ *//' | paste -sd,)" '4 409 held,6 503 busy'
}

# ---- the extension lockfence_validate, and this service through nginx and mutual TLS ---------------

# validated RESOURCE TOKEN: t, f, or the SQLSTATE.
validated() {
	local said
	said=$("${unprivileged[@]}" psql "$DSN" -qAtX -v VERBOSITY=sqlstate -v resource="$1" -v token="$2" 2>&1 \
		<<<"SELECT lockfence.validate(:'resource', :token)") || true
	echo "${said##*ERROR:  }"
}

validator_tests() {
	local s token name
	validator_start
	call a /v1/session '{"ttl":60}'
	s=$(field session)
	for name in kit:validated '../v1/release?x=1#y' 'a b&c=%2e+"'"'"'\' 'Grüße, 日本'; do
		call a /v1/acquire "$(jq -nc --arg s "$s" --arg r "$name" '{session: $s, resource: $r, request: $r}')"
		token=$(field token)
		is "the token of $name is valid" "$(validated "$name" "$token")" t
		is 'and the next one is not' "$(validated "$name" $((token + 1)))" f
		is 'nor is that of another lock' "$(validated "$name-" "$token")" f
	done
	is 'a name that the service refuses gets no answer' "$(validated $'a\r\nb: c' 5)" LF008
	call a /v1/acquire "{\"session\":\"$s\",\"resource\":\"kit:validated\",\"request\":\"kit:validated\"}"
	token=$(field token)
	is 'details are told' "$(sql "SELECT valid, epoch, expires_in BETWEEN '1 s' AND '60 s', latency > '0'
		FROM lockfence.validate_detail('kit:validated', $token)")" "t|$((token >> 48))|t|t"
	is 'a granted token writes' "$(write_row validated kit:validated "$token")" accepted
	is 'the highest token there is does not' "$(write_row validated kit:validated 9223372036854775807)" LF007
	is 'and has not become the mark' "$(mark_of kit:validated)" "$token"
	call a /v1/release "{\"session\":\"$s\",\"resource\":\"kit:validated\",\"token\":\"$token\"}"
	is 'a released token is not valid' "$(validated kit:validated "$token")" f
	validator_start cert_file= key_file=
	is 'without a client certificate there is no answer' "$(validated kit:validated "$token")" LF008
	validator_start timeout=1s
	kill -STOP -- "-$ARBITER_PID"
	is 'a service that is stopped does not answer in time' "$(validated kit:validated "$token")" LF008
	kill -CONT -- "-$ARBITER_PID"
	validator_start
	is 'and answers again afterwards' "$(validated kit:validated "$token")" f
	arbiter_stop
	is 'nginx with nothing behind it is no answer' "$(validated kit:validated "$token")" LF008
	arbiter_start --max-acquires 4
	wait_until 30 front_answers || die 'the arbiter does not come back'
	is 'with the service behind it, it is one again' "$(validated kit:validated "$token")" f
}

# ---- the holder library and its program ----------------------------------------------------------

# hold WHO RESOURCE OPTION... -- COMMAND...
hold() {
	local who=$1 resource=$2
	shift 2
	STATUS=0
	"${unprivileged[@]}" "$BUILD/lockfence-hold" --url "$URL" --ca "$CERTS/ca.pem" --cert "$CERTS/$who.pem" \
		--key "$CERTS/$who.key" --resource "$resource" "$@" >"$WORK/hold.out" 2>>"$LOGS/hold.log" || STATUS=$?
}

# The scripts' own resource: their tokens are presented, so the mark shows them.
holder_tests() {
	local mark before="SELECT coalesce(max(token)::bigint, 0) FROM lockfence.mark WHERE resource = 'kit:hold'"
	hold a kit:hold --dsn "$DSN" -- sh -c 'echo "$LOCKFENCE_RESOURCE $LOCKFENCE_TOKEN"; exit 3'
	is 'a command runs under the lock, and its status is told' "$STATUS" 3
	mark=$(sql "$before")
	is 'it knows its lock and token, which PostgreSQL was shown first' "$(cat "$WORK/hold.out")" "kit:hold $mark"
	hold a kit:hold --ttl 6 --wait 16 -- sleep 7
	is 'a hold outlasts its lease by renewals' "$STATUS" 0
	"${unprivileged[@]}" psql "$DSN" -qAtX -c "SELECT lockfence.present('kit:hold', 9000000000000000000)" >/dev/null
	hold a kit:hold --wait 5 --dsn "$DSN" -- true
	is 'a token below the mark is no lock' "$STATUS" 77
	sql "SELECT lockfence.reset_mark('kit:hold', $mark, 'a test of the kit poisoned it')" >/dev/null
	held_elsewhere
	fenced_when_cut_off
}

held_elsewhere() {
	local holder
	hold a kit:busy -- sh -c "touch '$WORK/busy.held'; until [ -e '$WORK/busy.over' ]; do sleep 0.1; done" &
	holder=$!
	wait_until 30 test -e "$WORK/busy.held" || true
	hold b kit:busy -- true
	is 'a lock that is held is not granted' "$STATUS" 75
	touch "$WORK/busy.over"
	wait "$holder" || true
}

# The service stops answering: the holder must stop by itself, before its lease can have run out.
fenced_when_cut_off() {
	local start holder
	(hold a kit:cut --ttl 12 --grace 1 -- sh -c "touch '$WORK/cut.held'; exec sleep 60"; echo "$STATUS" >"$WORK/cut.status") &
	holder=$!
	wait_until 30 test -e "$WORK/cut.held" || true
	start=$("$BUILD/pause-note" -)
	kill -STOP -- "-$ARBITER_PID"
	wait "$holder" || true
	kill -CONT -- "-$ARBITER_PID"
	is 'a holder that is cut off ends its command' "$(cat "$WORK/cut.status")" 76
	is 'within the lease' "$([ $(($("$BUILD/pause-note" -) - start)) -lt 12000000 ] && echo in time)" 'in time'
}
