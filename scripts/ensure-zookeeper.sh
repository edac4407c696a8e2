#!/bin/sh
# Makes sure that the comparison finds a ZooKeeper and the Java it needs:
# installs them from the system's packages where that needs no questions, or
# else says what to install. Quiet when there is nothing to do.
set -eu
cd "$(dirname "$0")"
./ensure-peer.sh java default-jre-headless
exec ./ensure-peer.sh /usr/share/java/zookeeper.jar zookeeper zookeeper
