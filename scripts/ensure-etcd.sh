#!/bin/sh
# Makes sure that the comparison finds an etcd: installs one from the system's
# packages where that needs no questions, or else says what to install. Quiet
# when there is nothing to do.
set -eu
cd "$(dirname "$0")"
exec ./ensure-peer.sh etcd etcd-server etcd
