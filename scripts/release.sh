#!/usr/bin/env bash
# usage: release.sh VERSION
#        release.sh rehearse
# Prepares the release of HEAD as VERSION, such as v0.1.0, in a clone, and proves it there: `go install` and `go get` find
# each module of it by its tag. Nothing is pushed; the last lines are the commands that push. `rehearse` does the same with
# the version v0.0.0-rehearsal, without a look at CHANGELOG.md. It resolves and loads all packages but compiles nothing,
# and removes the clone.
#
# A nested module that users install or import requires the root module, and replaces it by the code beside it, so that it
# builds while nothing is tagged. `go install` refuses a module with a replace directive. So the root's tag is at HEAD, and
# the tags of the nested modules are at a commit on top, which requires VERSION in place of each replace directive. That
# commit is reached by its tags only: no branch has it. Nested modules are no part of the root module's contents, so its
# checksum is the same at both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
	echo "release: $1" >&2
	exit 1
}

module=$(sed -n 's/^module //p' go.mod)
version=${1:-}
rehearsal= compile=()
if [[ $version == rehearse ]]; then
	rehearsal=true version=v0.0.0-rehearsal compile=(-n)
fi
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "VERSION is to be like v0.1.0, not '$version'"
if [[ -z $rehearsal ]]; then
	[[ -z $(git status --porcelain) ]] || fail "commit first: the tree is not clean"
	! git rev-parse -q --verify "refs/tags/$version" >/dev/null || fail "$version is tagged already"
	grep -qE "^## \[?${version#v}\]? - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
		fail "CHANGELOG.md has no section '## [${version#v}] - YYYY-MM-DD'"
	scripts/apidiff.sh "$version"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-release.XXXXXX")
[[ -z $rehearsal ]] || trap 'rm -rf "$work"' EXIT
clone=$work/clone
if [[ -z $rehearsal ]]; then
	git clone -q --no-tags . "$clone"
else # of the files as they are, committed or not
	export GIT_AUTHOR_NAME=rehearsal GIT_AUTHOR_EMAIL='<>' GIT_COMMITTER_NAME=rehearsal GIT_COMMITTER_EMAIL='<>'
	git init -q -b main "$clone"
	tar -c --exclude=.git . | tar -x -C "$clone"
	git -C "$clone" add .
	git -C "$clone" commit -qm "Rehearse a release"
fi

# From here on, Go fetches this repository from the clone by git, as it will from its host by the tags, and into a module
# cache of its own. What others have published comes from the usual cache first.
export GOWORK=off GOPRIVATE=$module GOSUMDB=off GOFLAGS=-modcacherw
GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOPROXY GOMODCACHE=$work/modules
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$clone.insteadOf" GIT_CONFIG_VALUE_0="https://$module"

# quietly runs a command, and shows what it printed if it fails.
quietly() {
	"$@" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		fail "'$*' failed in $PWD"
	}
}

git -C "$clone" tag "$version"
dirs=()
for mod in "$clone"/{cmd,integrations}/*/go.mod; do
	[[ -f $mod ]] || continue
	dir=${mod#"$clone/"} dir=${dir%/go.mod}
	dirs+=("$dir")
	cd "$clone/$dir"
	go mod edit -dropreplace="$module" -require="$module@$version"
	! grep -q '^replace' go.mod || fail "$dir/go.mod replaces another module than $module"
	quietly go mod tidy
	other=$(git diff --unified=0 -- go.mod go.sum | grep '^[+-][^+-]' | grep -vF "$module " || true)
	[[ -z $other ]] || fail "$dir was not tidy: $other"
done
git -C "$clone" commit -qam "Require $version in the nested modules"
for dir in "${dirs[@]}"; do
	git -C "$clone" tag "$dir/$version"
done

# The proof, outside of the repository: the program of README.md, each nested library, each program.
mkdir "$work/user" "$work/bin"
cd "$work/user"
awk '/^```/ { inside = $0 == "```go"; if (done++ && !inside) exit; next } inside' "$clone/README.md" >main.go
quietly go mod init example.com/user
quietly go get "$module@$version"
quietly go mod tidy
quietly go build "${compile[@]}" -o "$work/bin/user" .
echo "$module@$version: go get finds it, for the program of README.md"
for dir in "${dirs[@]}"; do
	if [[ $dir == cmd/* ]]; then
		GOBIN=$work/bin quietly go install "${compile[@]}" "$module/$dir@$version"
		[[ -n $rehearsal ]] || quietly "$work/bin/${dir##*/}" --help
		echo "$module/$dir@$version: go install finds it"
	else
		quietly go get "$module/$dir@$version"
		quietly go build "${compile[@]}" "$module/$dir"
		echo "$module/$dir@$version: go get finds it"
	fi
done

if [[ -z $rehearsal ]]; then
	tags=("$version" "${dirs[@]/%//$version}")
	echo "Prepared in $clone. To publish, in this order:"
	printf '    git fetch %s %s\n' "$clone" "${tags[*]/#/tag }"
	printf '    git push origin %s\n' "${tags[*]}"
fi
