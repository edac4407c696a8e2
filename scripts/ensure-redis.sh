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

me=ensure-redis apt=redis-server dnf=valkey apk=redis brew=redis service=redis-server
. "$(dirname "$0")/install-package.sh"
install

if ! have redis-server && ! have valkey-server; then
	echo 'ensure-redis: installed, but still not in PATH' >&2
	give_up
fi
