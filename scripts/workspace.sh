#!/usr/bin/env bash
# usage: workspace.sh COMMAND...
# Runs COMMAND, such as go vet ./..., in a workspace of all Go modules of this repository: one build graph, in which each
# package is compiled once. The argument ./... becomes the packages of all modules: ./bench/... ./cmd/holdfast/... and so on.
# Another package is named from the root: ./reliability/checker.
#
# The workspace is .build/go.work. It pins each dependency to the newest version that a go.mod here requires for its own
# imports, or else as "// indirect". Without pins it would select what any dependency of a dependency asks for: versions with
# which no module here is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

mapfile -t files < <(find . \( -name '.?*' -o -name testdata \) -prune -o -name go.mod -print | sort)
dirs=("${files[@]%/go.mod}")

# pins prints "path version" of each dependency. sort -V puts "~" before the end of a version, as Go does "-".
pins() {
	awk -v root="$(sed -n 's/^module //p' go.mod)" '
		function pin(path, version, order) {
			order = version
			gsub(/-/, "~", order)
			if (index(path "/", root "/") != 1) print path, (/\/\/ indirect/ ? 2 : 1), order, version
		}
		FNR == 1 || $1 == ")" { block = 0 }
		block && $1 !~ /^\/\// && NF >= 2 { pin($1, $2) }
		$1 == "require" && $2 == "(" { block = 1 }
		$1 == "require" && $2 != "(" { pin($2, $3) }
	' "${files[@]}" | sort -k1,1 -k2,2n -k3,3Vr | sort -u -s -k1,1 | cut -d ' ' -f 1,4
}

mkdir -p .build
new=$(mktemp .build/new.XXXXXX)
{
	echo "go $(sed -n 's/^go //p' "${files[@]}" | sort -V | tail -n 1)"
	printf 'use .%s\n' "${dirs[@]}"
	pins | sed -E 's/^(\S+) .*/replace \1 => &/'
} >"$new"
if cmp -s "$new" .build/go.work; then rm "$new"; else mv "$new" .build/go.work; fi

args=()
for arg; do
	if [[ $arg == ./... ]]; then
		args+=("${dirs[@]/%//...}")
	else
		args+=("$arg")
	fi
done
# In a workspace Go refuses -mod=mod, which a user may have set.
GOFLAGS=$(go env GOFLAGS | sed -E 's/(^| )-mod=[^ ]*//g')
export GOFLAGS
GOWORK=$PWD/.build/go.work "${args[@]}" </dev/null
