#!/usr/bin/env bash
# usage: need.sh PROGRAM [PACKAGE...]
# Makes sure that PROGRAM is there: installs the Debian packages where it is missing, apt-get is present, and the user is
# root or has sudo without a password. Exits non-zero, with one line that says why, if it is missing still.
set -euo pipefail

program=$1
shift

if command -v "$program" >/dev/null; then
	exit 0
fi

fail() {
	echo "$program is missing and was not installed: $1" >&2
	exit 1
}

(($#)) || fail "no package that has it is known"
command -v apt-get >/dev/null || fail "there is no apt-get here; install it by your system's means"
if [[ $(id -u) == 0 ]]; then
	as_root=(env)
elif sudo -n true 2>/dev/null; then
	as_root=(sudo -n env)
else
	fail "that takes root, or sudo without a password; run: apt-get install $*"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "$program is missing: installing $* by apt-get"
if ! {
	"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get update &&
		"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
} </dev/null >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	fail "apt-get failed, see above"
fi
command -v "$program" >/dev/null || fail "the packages $* do not contain it"
