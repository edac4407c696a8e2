#!/bin/sh
# Makes sure that "make prove" finds z3: installs it from the system's packages if that
# asks no questions, and otherwise says what to install.
# Prints nothing if there is nothing to do.
set -eu

have() { command -v z3 >/dev/null 2>&1; }

if have; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	make prove asks the solver z3, which is missing. Install it, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y z3
	  macOS            brew install z3
	  elsewhere        https://github.com/Z3Prover/z3/releases
	END
	exit 1
}

me=ensure-z3 apt=z3 dnf=z3 apk=z3 brew=z3 service=
. "$(dirname "$0")/install-package.sh"
install

if ! have; then
	echo 'ensure-z3: installed, but z3 is still not found' >&2
	give_up
fi
