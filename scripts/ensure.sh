#!/bin/sh
# Runs the scripts ensure-NAME.sh for what the tests need. Where apt-get installs, all that
# they lack comes in one go before.
# usage: ensure.sh NAME...
set -eu
cd "$(dirname "$0")"

if command -v apt-get >/dev/null 2>&1; then
	LEASEHOLD_LACKING=$(mktemp)
	export LEASEHOLD_LACKING
	for name; do
		"./ensure-$name.sh"
	done
	apt=$(sed 's/:.*//' "$LEASEHOLD_LACKING" | xargs) service=$(sed 's/.*://' "$LEASEHOLD_LACKING" | xargs)
	rm "$LEASEHOLD_LACKING"
	unset LEASEHOLD_LACKING
	if [ -n "$apt" ]; then
		me=ensure
		give_up() { :; } # the scripts below say what to install
		. ./install-package.sh
		install
	fi
fi
for name; do
	"./ensure-$name.sh"
done
