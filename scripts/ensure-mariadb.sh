#!/bin/sh
# Makes sure that the tests find the programs of a MariaDB server: installs them
# from the system's packages if that asks no questions, and otherwise says what to
# install. Prints nothing if there is nothing to do.
set -eu

# Packages may keep them out of PATH; see internal/testenv/sqltest/mariadb.go.
has() {
	command -v "$1" >/dev/null 2>&1 && return 0
	for f in "/usr/sbin/$1" "/usr/libexec/$1" "/opt/homebrew/opt/mariadb/bin/$1" "/usr/local/opt/mariadb/bin/$1"; do
		[ -x "$f" ] && return 0
	done
	return 1
}

have() { has mariadbd && has mariadb-install-db; }

if have; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	The tests of the guards start a real MariaDB server, and mariadbd or
	mariadb-install-db is missing. Install it, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y mariadb-server
	  Fedora           sudo dnf install -y mariadb-server
	  Alpine           sudo apk add mariadb
	  macOS            brew install mariadb
	END
	exit 1
}

me=ensure-mariadb apt=mariadb-server dnf=mariadb-server apk=mariadb brew=mariadb service=mariadb
. "$(dirname "$0")/install-package.sh"
install

if ! have; then
	echo 'ensure-mariadb: installed, but mariadbd and mariadb-install-db are still not found' >&2
	give_up
fi
