#!/bin/sh
# Publishes the packages of the tag that is checked out, as a draft of a release. In a
# workflow of GitHub, the signature is that of its identity; elsewhere cosign asks for one.
# usage: GORELEASER=VERSION SYFT=VERSION COSIGN=VERSION release.sh
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. scripts/package-tools.sh

tools
goreleaser release --clean
