#!/bin/sh
# Makes sure that the tests and the benchmark find a ZooKeeper and the Java it needs:
# installs them from the system's packages if that asks no questions, and otherwise says
# what to install. Prints nothing if there is nothing to do.
set -eu
cd "$(dirname "$0")"
./ensure-peer.sh java default-jre-headless
exec ./ensure-peer.sh /usr/share/java/zookeeper.jar zookeeper zookeeper
