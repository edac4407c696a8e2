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

command -v apt-get >/dev/null 2>&1 || give_up
me=ensure-peer apt=$package dnf= apk= brew=
. "$(dirname "$0")/install-package.sh"
install
have "$what" || give_up
