#!/bin/sh
# Installs a server that the benchmark, and perhaps a store, needs, unless it is installed.
# usage: ensure-peer.sh PROGRAM|FILE PACKAGE [SERVICE], by the names of Debian
set -eu

what=$1 package=$2 service=${3-}

have() { command -v "$1" >/dev/null 2>&1 || [ -e "$1" ]; }

if have "$what"; then
	exit 0
fi

give_up() {
	cat >&2 <<-END
	The tests or the comparison with other locks need $what, which is not there.
	Install it, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y $package

	Elsewhere, leave it out of the comparison: cd bench && go run . -only 'leasehold|redsync|islock|floor'
	END
	exit 1
}

if [ "$(id -u)" = 0 ]; then
	root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
	root='sudo -n'
else
	give_up
fi
command -v apt-get >/dev/null 2>&1 || give_up

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run executes a command and prints its output only if it fails.
run() {
	if ! "$@" >"$log" 2>&1 </dev/null; then
		echo "ensure-peer: this failed: $*" >&2
		cat "$log" >&2
		return 1
	fi
}

echo "ensure-peer: apt-get install $package" >&2
run $root apt-get update || true # an old package list is good enough, if there is one
run $root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$package" || give_up
# Debian starts what it installs. The benchmark starts servers of its own, so stop this one.
if [ -n "$service" ]; then
	if [ -d /run/systemd/system ]; then
		run $root systemctl disable --now "$service" || true
	elif command -v service >/dev/null 2>&1; then
		run $root service "$service" stop || true
	fi
fi
have "$what" || give_up
