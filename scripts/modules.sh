#!/usr/bin/env bash
# usage: modules.sh COMMAND...
# Runs COMMAND in the folder of each Go module of this repository, the nested ones too, and names those where it failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

failed=()
while read -r dir; do
	[[ $dir == . ]] || echo "--- in $dir"
	(cd "$dir" && "$@" </dev/null) || failed+=("$dir")
done < <(find . \( -name '.?*' -o -name testdata \) -prune -o -name go.mod -print | sed 's|/go.mod$||' | sort)

if ((${#failed[@]})); then
	echo "'$*' failed in: ${failed[*]}" >&2
	exit 1
fi
