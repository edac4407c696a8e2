#!/bin/sh
# Makes sure that the tests of the page find Chromium and chromedriver: installs them from the
# system's packages if that asks no questions, and otherwise says what to install. Prints nothing
# if there is nothing to do.
set -eu

have() { command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1; }

if have; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	The tests of the page start a real browser, and chromium or chromedriver is not in
	PATH. Install both, in the same version, then run this again:

	  Debian           sudo apt-get update && sudo apt-get install -y chromium chromium-driver
	  Fedora           sudo dnf install -y chromium chromedriver
	  Alpine           sudo apk add chromium chromium-chromedriver
	  macOS, Ubuntu    links called chromium and chromedriver to Chrome and its chromedriver
	END
	exit 1
}

me=ensure-chromium apt='chromium chromium-driver' dnf='chromium chromedriver' apk='chromium chromium-chromedriver' brew=chromedriver service=
. "$(dirname "$0")/install-package.sh"
install

if ! have; then
	echo 'ensure-chromium: installed, but still not in PATH' >&2
	give_up
fi
