#!/bin/sh
# Makes sure that the tests find Python and Node, whose clients docs/languages.md has:
# installs them from the system's packages if that asks no questions, and otherwise says
# what to install. Prints nothing if there is nothing to do.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

if have python3 && have node; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	The tests run clients for Python and Node (docs/clients.md, docs/languages.md), and python3
	or node is not in PATH. Install both, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y python3 nodejs
	  Fedora           sudo dnf install -y python3 nodejs
	  Alpine           sudo apk add python3 nodejs
	  macOS            brew install python node
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
have python3 && have node || give_up
