# What was expected, what was seen, and the verdict.  Sourced by run.

SKIPPED=0

# result PROOF CASE EXPECTED SEEN VERDICT [HISTORY]: holds, FAILS or not run; the history that the report draws beside it.
result() {
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "${@:1:5}" "$(basename "${6-}" .jsonl)" >>"$OUT/results.tsv"
	if [ -n "$SABOTAGE" ] && [ "$5" != 'not run' ]; then
		judge_sabotage "$1" "$2" "$4" "$5"
		return
	fi
	case $5 in
		holds) ok "proof $1, $2: $4" ;;
		FAILS) not_ok "proof $1, $2: $4" ;;
		*)
			SKIPPED=$((SKIPPED + 1))
			ok "proof $1, $2 # SKIP $4"
			;;
	esac
}

# verdict: holds if nothing was found wrong.  WRONG is a list of what was.
verdict() { if [ ${#WRONG[@]} = 0 ]; then echo holds; else echo FAILS; fi; }

wrong() { WRONG+=("$*"); }

# seen TEXT: with what was wrong, if anything was.
seen() {
	local text=$1 w
	for w in "${WRONG[@]}"; do text="$text; WRONG: $w"; done
	printf '%s' "$text"
}

note() { "$BUILD/pause-note" "$@"; }		# FILE WHO WHAT PHASE [KEY=VALUE]...

# has FILE WHO WHAT PHASE: is there such an event yet?
has() {
	[ -s "$1" ] && grep -F "\"who\":\"$2\",\"what\":\"$3\",\"phase\":\"$4\"" "$1" >/dev/null
}

# event FILE WHO WHAT PHASE FIELD: of the first such event.
event() {
	grep -F "\"who\":\"$2\",\"what\":\"$3\",\"phase\":\"$4\"" "$1" | head -n 1 | jq -r ".$5 // \"\"" || true
}

grants_reach() { [ "$(grants "$1")" -ge "$2" ]; }
grants() { grep -c '"what":"acquire","phase":"ok"' "$1" || true; }

seconds_between() { awk -v a="$1" -v b="$2" 'BEGIN { if (a == "" || b == "") print "?"; else printf "%.2f", (b - a) / 1e6 }'; }
milliseconds() { awk -v us="$1" 'BEGIN { if (us == "") print "?"; else printf "%.1f", us / 1e3 }'; }

# check_history FILE: the checker judges it, and must also reject the history broken in each way that it
# allows; one way is that PostgreSQL accepts what it refused.
check_history() {
	local said status=0
	[ -z "$KEEP_MUTANTS" ] || mkdir -p "$OUT/mutants"
	said=$("$BUILD/pause-check" --mutants ${KEEP_MUTANTS:+--keep "$OUT/mutants"} "$1") || status=$?
	CHECKED=$(sed -n 's/.*: good, \([0-9]*\) operations$/\1 operations checked/p' <<<"$said")
	if [ -z "$CHECKED" ]; then
		CHECKED='rejected by the checker'
		wrong "the history is not one of a lock and a fence: ${said#*: }"
	elif [ "$status" != 0 ]; then
		wrong "the checker accepted a mutant of the history: $(grep 'NOT REJECTED' <<<"$said" | head -n 1)"
	elif ! mutants_that rejected "$said" | grep -q 'stale write accepted'; then
		wrong 'no stale write was refused in this history, so that none could be accepted'
	fi
	[[ $CHECKED != *checked ]] || CHECKED="$CHECKED; mutants rejected: $(mutants_that rejected "$said")$(
		mutants_that 'does not fit' "$said" | sed 's/./; not possible: &/')"
	echo "$said" >>"$OUT/checks.log"
}

# mutants_that FATE OUTPUT: their names.
mutants_that() { sed -n "s/^  mutant \(.*[^ ]\)  *$1.*/\1/p" <<<"$2" | paste -sd, | sed 's/,/, /g'; }

print_table() {
	awk -F '\t' -v width="${COLUMNS:-150}" '
		function wrap(text, w, out,    n, words, i, line) {
			n = split(text, words, " "); line = ""; delete out; out[0] = 0
			for (i = 1; i <= n; i++) {
				if (length(line) && length(line) + length(words[i]) + 1 > w) { out[++out[0]] = line; line = words[i] }
				else line = line (length(line) ? " " : "") words[i]
			}
			out[++out[0]] = line
		}
		function rule(   i) { for (i = 0; i < 30 + 2 * w + 11; i++) printf "-"; print "" }
		BEGIN { w = int((width - 41) / 2); if (w < 30) w = 30
			printf "%-30s %-*s  %-*s  %s\n", "proof", w, "expected", w, "seen", "verdict"; rule() }
		{
			wrap($1 ". " $2, 29, a); wrap($3, w, b); wrap($4, w, c)
			m = a[0]; if (b[0] > m) m = b[0]; if (c[0] > m) m = c[0]
			for (i = 1; i <= m; i++)
				printf "%-30s %-*s  %-*s  %s\n", (i <= a[0] ? a[i] : ""), w, (i <= b[0] ? b[i] : ""),
					w, (i <= c[0] ? c[i] : ""), (i == 1 ? $5 : "")
			rule()
		}' "$OUT/results.tsv"
}

# What the report says of the run itself.
write_facts() {
	{
		printf 'run\t%s, scale %s\n' "$(date -u '+%Y-%m-%d %H:%M UTC')" "$SCALE"
		printf 'lease\t%s s; a holder is stopped for %s s%s\n' "$TTL" "$STOP" \
			"${WITH_ETCD:+; $CLIENTS clients in the storm}"
		[ -z "$SABOTAGE" ] || printf 'sabotage\t%s\n' "$(sabotage_words "$SABOTAGE")"
		printf 'lockfence\t%s\n' "$(sql "SELECT extversion FROM pg_extension WHERE extname = 'lockfence'")"
		printf 'PostgreSQL\t%s\n' "$(sql 'SHOW server_version')"
		[ -z "$WITH_ETCD" ] || printf 'etcd\t%s, three members\n' "$(etcd --version | sed -n 's/^etcd Version: //p')"
		printf 'machine\t%s processors, Linux %s\n' "$(nproc)" "$(uname -r)"
	} >"$OUT/facts.tsv"
}
