#!/bin/sh
# Makes sure that the tests find the programs of a PostgreSQL server: installs
# them from the system's packages if that asks no questions, and otherwise says
# what to install. Prints nothing if there is nothing to do.
set -eu

# Packages keep them out of PATH; see internal/testenv/sqltest/postgresql.go.
have() {
	command -v initdb >/dev/null 2>&1 && return 0
	for f in /usr/lib/postgresql/*/bin/initdb /usr/libexec/postgresql*/initdb \
		/opt/homebrew/opt/postgresql*/bin/initdb /usr/local/opt/postgresql*/bin/initdb; do
		[ -x "$f" ] && return 0
	done
	return 1
}

if have; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	The tests of the guards start a real PostgreSQL server, and there is no initdb.
	Install one, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y postgresql
	  Fedora           sudo dnf install -y postgresql-server
	  Alpine           sudo apk add postgresql
	  macOS            brew install postgresql@17
	END
	exit 1
}

me=ensure-postgres apt=postgresql dnf=postgresql-server apk=postgresql brew=postgresql@17 service=postgresql
. "$(dirname "$0")/install-package.sh"
install

if ! have; then
	echo 'ensure-postgres: installed, but initdb is still not found' >&2
	give_up
fi
