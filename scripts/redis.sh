#!/usr/bin/env bash
# Makes sure that there is a Redis server to test against: redis-server, or what HOLDFAST_REDIS_SERVER names. It runs
# Sentinels too. Without one the tests that need it are skipped; where CI=true they would fail, and so does this.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

server=${HOLDFAST_REDIS_SERVER:-redis-server}
packages=()
[[ $server != redis-server ]] || packages=(redis-server)

if scripts/need.sh "$server" "${packages[@]}"; then
	"$server" --version
elif [[ ${CI:-} == true ]]; then
	exit 1
else
	echo "Tests that need a real server will be skipped." >&2
fi
