#!/usr/bin/env bash
# usage: fuzz.sh TIME
# Runs each fuzz target of the Go module in the current folder for TIME, as in 2s, 5m or 1000x, guided by coverage. See also
# fuzzed.sh.
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz TARGET DIR TIME passes too if the run ended by time with "context deadline exceeded" and no input failed, as it may
# before Go 1.27: go.dev/issue/75804.
fuzz() {
	go test -run '^$' -fuzz "^$1\$" -fuzztime "$3" "$2" 2>&1 | tee "$log" ||
		{ grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; }
}

failed=()
for dir in $(go list -f '{{.Dir}}' ./...); do
	# To ask the test binary for its targets would take a build of its own.
	for target in $(sed -nE 's/^func (Fuzz\w*)\(.*/\1/p' "$dir"/*_test.go 2>/dev/null); do
		echo "$target of ${dir#"$PWD"/}"
		fuzz "$target" "$dir" "$1" || failed+=("$target of $dir")
	done
done

if ((${#failed[@]})); then
	printf 'Failed, with an input that is kept in testdata/fuzz beside it: %s\n' "${failed[@]}" >&2
	exit 1
fi
