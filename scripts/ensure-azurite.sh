#!/bin/sh
# Prints the path of azurite-blob, an emulator of Azure Blob Storage, for the tests. If there is
# none yet, it installs it with npm into a cache directory of the user, and nothing into the
# system. With --find it installs nothing, and prints nothing if there is none.
#
# To get another version, remove the directory and run it again.
set -eu
me=ensure-azurite
version=3.37.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/leasehold-test/azurite
program=node_modules/.bin/azurite-blob

if [ -x "$dir/$program" ]; then
	echo "$dir/$program"
	exit 0
fi
if [ "${1-}" = --find ]; then
	exit 0
fi
command -v npm >/dev/null 2>&1 || {
	echo "$me: install npm, or set LEASEHOLD_AZURITE to the path of azurite-blob" >&2
	exit 1
}
mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
echo "$me: installing azurite $version into $dir (360 MB)" >&2
(cd "$new" && npm install --no-audit --no-fund --ignore-scripts "azurite@$version" >&2)
mv -T "$new" "$dir" 2>/dev/null || [ -x "$dir/$program" ] # or another process was faster
trap - EXIT
echo "$dir/$program"
