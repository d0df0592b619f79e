# The tests of the kit's own parts.  Sourced by run.

# self_test: adds to PASSED and FAILED.
self_test() {
	local t last
	for t in pause-check-test; do
		"${unprivileged[@]}" "$BUILD/$t" >"$LOGS/$t.log" 2>&1 || true
		grep '^not ok' "$LOGS/$t.log" || true
		last=$(tail -n 1 "$LOGS/$t.log")
		if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
			PASSED=$((PASSED + BASH_REMATCH[1])) FAILED=$((FAILED + BASH_REMATCH[2]))
		else
			cat "$LOGS/$t.log"
			FAILED=$((FAILED + 1))
		fi
		say "$t: $last"
	done
}
