#!/bin/sh
# Makes sure that the tests find Python and Node, whose clients docs/languages.md has, and the
# package redis of Python, which docs/redis-door.md names: installs them from the system's
# packages if that asks no questions, and otherwise says what to install. Prints nothing if there is nothing to do.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

# The system's package is for the system's Python, which need not be the first in PATH.
have_redis() { python3 -c 'import redis' 2>/dev/null || /usr/bin/python3 -c 'import redis' 2>/dev/null; }

if have python3 && have node && have_redis; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	The tests run clients for Python and Node (docs/clients.md, docs/languages.md), and python3
	or node is not in PATH, or Python has no package redis. Install them, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y python3 python3-redis nodejs
	  Fedora           sudo dnf install -y python3 python3-redis nodejs
	  Alpine           sudo apk add python3 py3-redis nodejs
	  macOS            brew install python node && python3 -m pip install redis
	END
	exit 1
}

. "$(dirname "$0")/install-package.sh"
service=
if ! have python3; then
	me=ensure-languages apt=python3 dnf=python3 apk=python3 brew=python
	install
fi
if ! have node; then
	me=ensure-languages apt=nodejs dnf=nodejs apk=nodejs brew=node
	install
fi
if have python3 && ! have_redis; then
	me=ensure-languages apt=python3-redis dnf=python3-redis apk=py3-redis brew=
	install
fi
have python3 && have node && have_redis || give_up
