#!/bin/sh
# Fails with a clear message if there is no C compiler, which the race detector
# needs.
set -eu

if [ "$(go env CGO_ENABLED)" = 1 ] && command -v "$(go env CC | cut -d ' ' -f 1)" >/dev/null 2>&1; then
	exit 0
fi
cat >&2 <<END
The tests run with Go's race detector, which needs cgo and a C compiler
(CGO_ENABLED=$(go env CGO_ENABLED), CC=$(go env CC)). Install one, then run this again:

  Debian, Ubuntu   sudo apt-get install -y gcc libc6-dev
  Fedora           sudo dnf install -y gcc
  Alpine           sudo apk add gcc musl-dev
  macOS            xcode-select --install

Without it: go test work
END
exit 1
