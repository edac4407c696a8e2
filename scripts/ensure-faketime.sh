#!/bin/sh
# Makes sure that the tests find libfaketime on Linux: see ensure-peer.sh.
set -eu
[ "$(uname)" = Linux ] || exit 0
exec "$(dirname "$0")/ensure-peer.sh" faketime faketime
