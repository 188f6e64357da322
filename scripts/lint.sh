#!/usr/bin/env bash
# usage: lint.sh [build]
# Runs golangci-lint over all modules, always at the version below: an installed program of that version, else one in the
# user's cache, which is built from source once, in about three minutes. `build` does no more than that. By default it runs
# once, in a workspace of the modules, where gomoddirectives reads one go.mod only; MODULES=scripts/modules.sh runs it in one
# module after another, and it reads each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=2.15.0

cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
cache=${cache:-$(dirname "$(go env GOCACHE)")}/holdfast
# A program that was built with an older Go refuses code for a newer one.
program=$cache/golangci-lint-$version-$(go env GOVERSION)

# build builds the program. If another process is building it, build waits for that one.
build() {
	mkdir -p "$cache"
	(
		if command -v flock >/dev/null; then flock 9; fi
		[[ ! -x $program ]] || exit 0
		work=$(mktemp -d "$cache/work.XXXXXX")
		trap 'rm -rf "$work"' EXIT
		GOWORK=off GOFLAGS='' GOBIN=$work go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$version"
		mv "$work/golangci-lint" "$program"
	) 9>"$program.lock"
}

if [[ $(golangci-lint version --short 2>/dev/null) == "$version" ]]; then
	program=golangci-lint
elif [[ ! -x $program ]]; then
	echo "golangci-lint $version is built, once: about three minutes"
	build
fi
[[ ${1:-} == build ]] || exec "${MODULES:-scripts/workspace.sh}" "$program" run --config "$PWD/.golangci.yaml" ./...
