# TAP, for scripts that try things; a bash file to be sourced, from beside lib.sh or after it.
#
#   check WHAT COMMAND...   a test: the command succeeds; if it does not, what it said is shown
#   ok WHAT                 a test that passed
#   not_ok WHAT [WHY...]    one that failed, and a line of diagnostics for each WHY
#   adopt <TAP              the tests of another program become tests of this one
#   done_testing            comes last: the plan, and by its status whether all passed
#
# scripts/test runs such scripts by prove, and so can you: prove --verbose --exec '' SCRIPT

tests=0 failures=0

ok() {
	tests=$((tests + 1))
	printf 'ok %s - %s\n' $tests "$*"
}

not_ok() {
	tests=$((tests + 1)) failures=$((failures + 1))
	printf 'not ok %s - %s\n' $tests "$1"
	shift
	[ $# = 0 ] || printf '%s\n' "$@" | sed 's/^/# /'
}

check() {
	local what=$1 said
	shift
	if said=$("$@" 2>&1); then ok "$what"; else not_ok "$what" "$said"; fi
}

# Numbers and plans are this program's own; what is no test is shown as a comment.
adopt() {
	local line
	while IFS= read -r line; do
		if [[ $line =~ ^(not )?ok($|\ +[0-9]*\ *-?\ *(.*)) ]]; then
			if [ -z "${BASH_REMATCH[1]}" ]; then ok "${BASH_REMATCH[3]}"; else not_ok "${BASH_REMATCH[3]}"; fi
		elif [[ ! $line =~ ^1\.\.[0-9] ]]; then
			printf '# %s\n' "${line#\# }"
		fi
	done
}

# A program that has tried nothing has shown nothing.
done_testing() {
	printf '1..%s\n' $tests
	[ $tests -gt 0 ] && [ $failures = 0 ]
}
