#!/bin/sh
# Makes sure that the tests and the benchmark find etcd and etcdctl: installs them from
# the system's packages if that asks no questions, and otherwise says what to install.
# Prints nothing if there is nothing to do.
set -eu

have() { command -v etcd >/dev/null 2>&1 && command -v etcdctl >/dev/null 2>&1; }

if have; then
	exit 0
fi

give_up() {
	cat >&2 <<-'END'
	The tests of store/etcdstore start a real etcd, and etcd or etcdctl is missing.
	Install them, then run this again:

	  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y etcd-server etcd-client
	  macOS            brew install etcd
	  elsewhere        https://github.com/etcd-io/etcd/releases
	END
	exit 1
}

me=ensure-etcd apt='etcd-server etcd-client' dnf=etcd apk=etcd brew=etcd service=etcd
. "$(dirname "$0")/install-package.sh"
install

if ! have; then
	echo 'ensure-etcd: installed, but etcd and etcdctl are still not found' >&2
	give_up
fi
