#!/usr/bin/env bash
# usage: debian-server.sh SUITE PACKAGE
# Unpacks a server of a Debian suite, with all the libraries that it needs, into a folder of the user's cache, and prints the
# path of a program that runs it. Nothing is installed, and no root is needed. What is in the cache is not fetched again;
# remove the folder for a newer version. The packages come from where this machine's own come from.
set -euo pipefail

suite=$1 package=$2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/$suite-$package
program=$cache/$package
if [[ -x $program ]]; then
	echo "$program"
	exit 0
fi

fail() {
	echo "$package of Debian $suite: $1" >&2
	exit 1
}
command -v apt-get >/dev/null || fail "there is no apt-get here"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -m 1 '/debian/$') ||
	fail "apt has no Debian archive among its sources"

mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,state,cache/archives/partial,root}
: >"$work/status"
base=${suite%-backports} # what the suite adds to, which has the libraries
[[ $suite != experimental ]] || base=unstable
for s in "$base" "$suite"; do
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $s main"
done | sort -u >"$work/sources"
options=(
	-o "Dir::Etc::SourceList=$work/sources" -o Dir::Etc::SourceParts=- -o Dir::Etc::Preferences=- -o Dir::Etc::PreferencesParts=-
	-o "Dir::State=$work/state" -o "Dir::State::Lists=$work/lists" -o "Dir::State::Status=$work/status" # as if nothing were installed
	-o "Dir::Cache=$work/cache" -o Debug::NoLocking=true -o APT::Sandbox::User= -o Acquire::Languages=none
)
if ! {
	apt-get "${options[@]}" update &&
		apt-get "${options[@]}" -t "$suite" --no-install-recommends --download-only -y install "$package"
} </dev/null >"$work/log" 2>&1; then
	tail -n 20 "$work/log" >&2
	fail "apt-get failed, see above"
fi
for deb in "$work"/cache/archives/*.deb; do
	dpkg -x "$deb" "$work/root"
done
rm -rf "$cache/root"
mv "$work/root" "$cache/root"

# The libraries are of the server's suite, libc and its loader too: what this machine has may be older.
root=$cache/root
binary=$(find "$root" -path "*/bin/$package" -print -quit)
[[ -n $binary ]] || fail "the package has no program of that name"
loader=$(find "$root" -name 'ld-linux*.so.*' -print -quit)
[[ -n $loader ]] || fail "its libc has no loader"
libraries=$(find "$root" -path '*/lib/*-linux-gnu*/*.so*' -printf '%h\n' | grep -E '/lib/[^/]+$' | sort -u | paste -sd:)
cat >"$work/program" <<END
#!/bin/sh
exec '$loader' --library-path '$libraries' '$binary' "\$@"
END
chmod +x "$work/program"
"$work/program" --version >&2 || fail "it does not run"
mv "$work/program" "$program"
echo "$program"
