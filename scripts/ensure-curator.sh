#!/bin/sh
# Makes sure that the tests find Apache Curator, and BeanShell, which runs a Java program
# without a compiler: installs them from the system's packages (3 MB) if that asks no
# questions, and otherwise says what to install. Prints nothing if there is nothing to do.
set -eu
cd "$(dirname "$0")"
./ensure-zookeeper.sh
./ensure-peer.sh /usr/share/java/bsh.jar libbsh-java
exec ./ensure-peer.sh /usr/share/java/curator-recipes.jar libcurator-recipes-java
