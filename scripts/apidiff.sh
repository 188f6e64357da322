#!/usr/bin/env bash
# usage: apidiff.sh [VERSION]
# Shows what the listings of the exported names (api.txt of each module) gained and lost since the latest tagged release.
# With VERSION, such as v0.2.0, fails if a release of that number may not have these changes; see docs/versions.md. Where
# no release is tagged, as in a shallow clone, it says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:-}
if ! last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null); then
	echo "apidiff: no release is tagged here, so there is nothing to compare with"
	exit 0
fi

changes=$(git diff --unified=0 "$last" -- ':(glob)**/api.txt' | grep '^[+-]pkg ' || true)
# What programs may not compile with: something is gone or another, or an interface that was there has a method more.
breaking=$(awk '
	/^-/ { print; next }
	/^\+.* interface$/ { new[substr($0, 2)] = 1 }
	/^\+.* interface, / { line[++n] = $0 }
	END { for (i = 1; i <= n; i++) { owner = substr(line[i], 2); sub(/ interface, .*/, " interface", owner); if (!(owner in new)) print line[i] } }
' <<<"$changes")
echo "apidiff: since $last, $(grep -c '^+' <<<"$changes" || true) lines more and $(grep -c '^-' <<<"$changes" || true) fewer"
[[ -z $changes ]] || echo "$changes"
[[ -n $version ]] || exit 0

IFS=.- read -r major minor _ <<<"${version#v}"
IFS=.- read -r last_major last_minor _ <<<"${last#v}"
fail() {
	echo "apidiff: $version after $last: $1" >&2
	exit 1
}
if [[ $major == "$last_major" && $minor == "$last_minor" && -n $changes ]]; then
	fail "a patch release changes no exported name; increase the minor version"
fi
if [[ $major == "$last_major" && $major != 0 && -n $breaking ]]; then
	fail "a release of the same major version breaks no program; these lines do:
$breaking"
fi
