# What a proof must find: runs in which the fence or the lock service is at fault.  Sourced by run.
#
#   bypass    every session of the server has lockfence.bypass on
#   trigger   the guards are dropped from the kit's table
#   twice     the arbiter grants a lock that another holds, under a lease that is alive
#   unsealed  the arbiter serves a restored cluster as if nothing had happened

SABOTAGES=(bypass trigger twice unsealed)

sabotage_words() {
	case $1 in
		bypass) echo 'lockfence.bypass is on' ;;
		trigger) echo 'the guards of the table are dropped' ;;
		twice) echo 'the lock service grants a lock that another client holds' ;;
		unsealed) echo 'the lock service does not notice that its history went back' ;;
	esac
}

# Options of the arbiter.
sabotage_of_arbiter() {
	case $SABOTAGE in
		twice) echo --sabotage grants-twice ;;
		unsealed) echo --sabotage never-seals ;;
	esac
}

# must_see SABOTAGE PROOF CASE: what is to be seen where the verdict must be FAILS; nothing where it must hold.
must_see() {
	case $1-$2-$3 in
		*-5-'control: the fence is bypassed') ;;
		bypass-1-'control: a table without a fence' | trigger-1-'control: a table without a fence') ;;
		trigger-3-*'with a validator') ;;
		trigger-3-'the whole history') echo 'the history is not one of a lock and a fence' ;;
		trigger-3-*) echo 'a write with an earlier token was accepted' ;;
		bypass-5-'control: a lease that another hand cut short' | trigger-5-'control: a lease that another hand cut short')
			echo 'the stale write was accepted'
			;;
		bypass-3-*'with a validator') echo 'answered accepted and not LF008' ;;
		bypass-3-'the whole history') echo 'the history is not one of a lock and a fence' ;;
		bypass-3-*) echo 'a write with an earlier token was accepted' ;;
		# Of many clients: which of their writes the checker names, and for what, is a matter of the order.
		bypass-[24]-* | trigger-[24]-* | bypass-5-'clients that take one'* | trigger-5-'clients that take one'*)
			echo 'a delayed write was accepted.*the history is not one of a lock and a fence'
			;;
		bypass-* | trigger-*) echo 'accepted although its token is below the mark' ;;
		twice-1-'paused under etcdctl lock') ;;
		twice-[124]-*) echo 'granted while another still held the lock' ;;
		unsealed-3-*'with a validator') echo 'answered accepted and not LF008' ;;
		unsealed-3-'the whole history') echo 'the history is not one of a lock and a fence' ;;
		unsealed-3-*) echo 'renew was answered 200' ;;
	esac
}

# judge_sabotage PROOF CASE SEEN VERDICT
judge_sabotage() {
	local must what="with the sabotage '$SABOTAGE', proof $1, $2"
	must=$(must_see "$SABOTAGE" "$1" "$2")
	if [ -z "$must" ]; then
		if [ "$4" = holds ]; then ok "$what: holds, for it is not concerned"; else not_ok "$what: must hold" "$3"; fi
	elif [ "$4" = FAILS ] && grep -q "$must" <<<"$3"; then
		ok "$what: FAILS, as it must: $must"
	else
		not_ok "$what: must fail, for: $must" "$4: $3"
	fi
}

# What the report then says above the picture, and at the fault.
check_report() {
	local words
	case $SABOTAGE in
		bypass | trigger) words='STALE WRITE ACCEPTED' ;;
		twice) words='TWO HOLDERS' ;;
		unsealed) words='GRANTED WHILE SEALED' ;;
		*) check "the report shows no fault but those of the controls" no_fault_shown; return ;;
	esac
	! cut -f 5 "$OUT/results.tsv" | grep -q FAILS ||
		check "the report shows it: $words" grep -q "class=\"flag alarm\".*$words" "$OUT/report.html"
}

no_fault_shown() { ! grep 'class="faults"' "$OUT/report.html"; }

# The database's part; the lock service has its own when it starts.
sabotage_begin() {
	case $SABOTAGE in
		bypass) sql "ALTER DATABASE $(database_name) SET lockfence.bypass = on" ;;
		trigger)
			sql "DO \$\$ DECLARE g name; BEGIN
				FOR g IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'pause_kit.account'::regclass AND NOT tgisinternal LOOP
					EXECUTE format('DROP TRIGGER %I ON pause_kit.account', g);
				END LOOP; END \$\$" 2>>"$LOGS/table.log"
			;;
	esac
}

sabotage_end() {
	case $SABOTAGE in
		bypass) sql "ALTER DATABASE $(database_name) RESET lockfence.bypass" ;;
		trigger) own_table ;;
	esac
}

database_name() { sql 'SELECT quote_ident(current_database())'; }

# Of --ci: each sabotage with the proofs that are to find it.
sabotage_runs() {
	local wanted=("${PROOFS[@]}")
	for SABOTAGE in "${SABOTAGES[@]}"; do
		case $SABOTAGE in
			bypass) PROOFS=(1 2 3 4 5) ;;
			trigger) PROOFS=(1 5) ;;
			twice) PROOFS=(1 2) ;;
			unsealed) PROOFS=(3) ;;
		esac
		say "sabotage: $(sabotage_words "$SABOTAGE")"
		run_proofs "sabotage-$SABOTAGE"
	done
	SABOTAGE=
	PROOFS=("${wanted[@]}")
}
