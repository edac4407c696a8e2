#!/bin/sh
# Makes sure that the tests find PgBouncer: installs it from the system's packages
# if that asks no questions, and otherwise says what to install. Prints nothing if
# there is nothing to do.
set -eu

# Packages keep it out of PATH; see internal/testenv/sqltest/pgbouncer.go.
have() {
	command -v pgbouncer >/dev/null 2>&1 && return 0
	for f in /usr/sbin/pgbouncer /usr/local/sbin/pgbouncer /opt/homebrew/bin/pgbouncer; do
		[ -x "$f" ] && return 0
	done
	return 1
}

if have; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	The tests of the store in a database start a real PgBouncer, and there is none.
	Install it, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y pgbouncer
	  Fedora           sudo dnf install -y pgbouncer
	  Alpine           sudo apk add pgbouncer
	  macOS            brew install pgbouncer
	END
	exit 1
}

me=ensure-pgbouncer apt=pgbouncer dnf=pgbouncer apk=pgbouncer brew=pgbouncer service=pgbouncer
. "$(dirname "$0")/install-package.sh"
install

if ! have; then
	echo 'ensure-pgbouncer: installed, but pgbouncer is still not found' >&2
	give_up
fi
