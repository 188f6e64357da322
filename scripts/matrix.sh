#!/usr/bin/env bash
# usage: matrix.sh [SERVER...]
# Runs the whole suite on one kind of server after another, and prints a line for each: version, result, time. Fails if any
# failed. SERVER is a program, such as redis-server, or SUITE/PACKAGE of Debian, such as testing/valkey-server; by default
# what is installed, Valkey 8.0, and the newest Valkey and Redis that Debian has. MATRIX_PACKAGES are the packages to test,
# ./... by default; TESTFLAGS are more flags for `go test`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

servers=("$@")
(($#)) || servers=("${HOLDFAST_REDIS_SERVER:-redis-server}" bookworm-backports/valkey-server testing/valkey-server testing/redis-server)
read -ra packages <<<"${MATRIX_PACKAGES:-./...}"
read -ra flags <<<"${TESTFLAGS:-}"
logs=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-matrix.XXXXXX")

failed=0
lines=()
for server in "${servers[@]}"; do
	log=$logs/${server//\//-}.log
	program=$server
	[[ $server != */*-server || -x $server ]] || program=$(scripts/debian-server.sh "${server%/*}" "${server##*/}" 2>"$log")
	version=$("$program" --version 2>>"$log" | sed -E 's/^(\w+) server v=([0-9.]+).*/\1 \2/')
	began=$SECONDS
	if [[ -z $version ]]; then
		result="no server"
	elif CI=true HOLDFAST_REDIS_SERVER=$program go test -count=1 "${flags[@]}" "${packages[@]}" </dev/null >"$log" 2>&1; then
		result=passed
	else
		result=FAILED
		grep -E '^ *--- FAIL|^(FAIL|panic:)' "$log" | sort -u | head -n 40
	fi
	[[ $result == passed ]] || failed=1
	line=$(printf '%-16s %-9s %5d s  %s' "${version:-$server}" "$result" "$((SECONDS - began))" "$log")
	echo "$line"
	lines+=("$line")
done

echo "==> matrix:"
printf '%s\n' "${lines[@]}"
exit "$failed"
