#!/bin/sh
# Checks .goreleaser.yaml, makes packages as for a release into dist, and tries those
# for this machine where dpkg and rpm are there. Nothing is published or signed.
# usage: package.sh VERSION-OF-GORELEASER [all], for all systems instead of Linux
set -eu
cd "$(dirname "$0")/.."
version=$1
go=${GO:-go}

goreleaser() { "$go" run "github.com/goreleaser/goreleaser/v2@$version" "$@"; }

skip=sign
command -v syft >/dev/null 2>&1 || skip=$skip,sbom
if [ "${2-}" != all ]; then
	export LINUX_ONLY=yes
	skip=$skip,homebrew
fi
echo "package: goreleaser $version, without $skip" >&2
goreleaser check
goreleaser release --snapshot --clean --skip="$skip"

if command -v dpkg >/dev/null 2>&1; then
	scripts/try-package.sh "$(ls dist/*_"$(dpkg --print-architecture)".deb)"
fi
if command -v rpm >/dev/null 2>&1; then
	scripts/try-package.sh "$(ls dist/*_linux_"$("$go" env GOARCH)".rpm)"
fi
if [ "$(uname -s)" = Linux ]; then
	scripts/try-image.sh "$(ls dist/linux_linux_"$("$go" env GOARCH)"*/leasehold)"
fi
