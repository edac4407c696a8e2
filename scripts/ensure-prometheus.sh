#!/bin/sh
# Makes sure that the tests find Prometheus and promtool: installs them from the
# system's packages if that asks no questions, and otherwise says what to install.
# Prints nothing if there is nothing to do.
set -eu

have() { command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1; }

if have; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	The tests of the metrics start a real Prometheus, and it or promtool is not in
	PATH. Install it, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y prometheus
	  Fedora           sudo dnf install -y golang-github-prometheus
	  Alpine           sudo apk add prometheus
	  macOS            brew install prometheus
	END
	exit 1
}

me=ensure-prometheus apt=prometheus dnf=golang-github-prometheus apk=prometheus brew=prometheus service=prometheus
. "$(dirname "$0")/install-package.sh"
install

if ! have; then
	echo 'ensure-prometheus: installed, but still not in PATH' >&2
	give_up
fi
