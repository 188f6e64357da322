#!/usr/bin/env bash
# usage: fuzz.sh TIME
# Runs each fuzz target of the Go module in the current folder for TIME, as in 2s, 5m or 1000x.
set -euo pipefail

failed=()
for dir in $(go list -f '{{.Dir}}' ./...); do
	# To ask the test binary for its targets would take a build of its own.
	for target in $(sed -nE 's/^func (Fuzz\w*)\(.*/\1/p' "$dir"/*_test.go 2>/dev/null); do
		echo "$target of ${dir#"$PWD"/}"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$dir" || failed+=("$target of $dir")
	done
done

if ((${#failed[@]})); then
	printf 'Failed, with an input that is kept in testdata/fuzz beside it: %s\n' "${failed[@]}" >&2
	exit 1
fi
