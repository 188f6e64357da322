#!/usr/bin/env bash
# usage: go test -exec 'scripts/fuzzed.sh INPUTS' ...
# Runs the test binary that go test built, and then tries INPUTS inputs for each fuzz target of its package, such as 5000x.
# The binary is not instrumented, so that nothing is built again: inputs are random mutations of the corpus, and coverage does
# not guide them, as it does in fuzz.sh. What fails is kept in testdata/fuzz. With a pattern of tests to run no input is tried.
set -uo pipefail

inputs=$1
shift
targets=()
[[ " $* " == *" -test.run="* || " $* " == *" -test.list="* ]] || targets=($(sed -nE 's/^func (Fuzz\w*)\(.*/\1/p' ./*_test.go 2>/dev/null))
((${#targets[@]})) || exec "$@"

"$@" || exit
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
failed=()
for target in "${targets[@]}"; do
	# -test.timeout does not end fuzzing.
	timeout --signal=QUIT --kill-after=30 10m "$1" -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="$inputs" \
		-test.fuzzcachedir="$cache" -test.parallel=1 || failed+=("$target")
done
if ((${#failed[@]})); then
	echo "Failed; an input, if there is one, is kept in testdata/fuzz of the package: ${failed[*]}" >&2
	exit 1
fi
