#!/bin/sh
# Makes sure that the benchmark finds an etcd: installs one from the system's
# packages if that asks no questions, and otherwise says what to install. Prints
# nothing if there is nothing to do.
set -eu
cd "$(dirname "$0")"
exec ./ensure-peer.sh etcd etcd-server etcd
