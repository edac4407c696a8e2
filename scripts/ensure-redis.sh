#!/bin/sh
# Makes sure that the tests find a redis-server or valkey-server: installs one
# from the system's packages if that asks no questions, and otherwise says what
# to install. Prints nothing if there is nothing to do.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

if have redis-server || have valkey-server; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	The tests start real Redis servers, and there is neither a redis-server nor a
	valkey-server in PATH. Install one, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y redis-server
	  Fedora           sudo dnf install -y valkey     (older: redis)
	  Alpine           sudo apk add redis
	  macOS            brew install redis
	END
	exit 1
}

if [ "$(id -u)" = 0 ]; then
	root=
elif have sudo && sudo -n true 2>/dev/null; then
	root='sudo -n'
else
	root=no
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run executes a command and prints its output only if it fails.
run() {
	if ! "$@" >"$log" 2>&1 </dev/null; then
		echo "ensure-redis: this failed: $*" >&2
		cat "$log" >&2
		return 1
	fi
}

if have brew && [ "$(id -u)" != 0 ]; then # brew neither needs nor wants root
	echo 'ensure-redis: brew install redis' >&2
	run brew install redis || give_up
elif [ "$root" = no ]; then
	give_up
elif have apt-get; then
	echo 'ensure-redis: apt-get install redis-server' >&2
	run $root apt-get update || true # an old package list is good enough, if there is one
	run $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server || give_up
	# Debian starts what it installs. The tests start servers of their own, so stop
	# this one. The package was not here before (see above), so nobody uses the
	# service yet.
	if [ -d /run/systemd/system ]; then
		run $root systemctl disable --now redis-server || true
	elif have service; then
		run $root service redis-server stop || true
	fi
elif have dnf; then
	echo 'ensure-redis: dnf install valkey (or redis)' >&2
	run $root dnf install -y valkey || run $root dnf install -y redis || give_up
elif have apk; then
	echo 'ensure-redis: apk add redis' >&2
	run $root apk add redis || give_up
else
	give_up
fi

if ! have redis-server && ! have valkey-server; then
	echo 'ensure-redis: installed, but still not in PATH' >&2
	give_up
fi
