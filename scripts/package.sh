#!/bin/sh
# Checks .goreleaser.yaml, makes packages as for a release into dist, and tries those
# for this machine where dpkg and rpm are there. Nothing is published. With "all" it makes
# those of all systems, lists what is in them, and signs with a key that it throws away.
# usage: GORELEASER=VERSION SYFT=VERSION COSIGN=VERSION package.sh [all]
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. scripts/package-tools.sh

fail() {
	echo "package: $*" >&2
	exit 1
}

echo "package: goreleaser $GORELEASER" >&2
goreleaser check
if [ "${1-}" != all ]; then
	LINUX_ONLY=yes goreleaser release --snapshot --clean --skip=sign,sbom,homebrew
else
	tools
	# cosign reads its flags from these: it signs with a key and uses no services, instead of
	# the identity of the workflow "release".
	export COSIGN_PASSWORD= COSIGN_KEY="$work/throwaway.key" COSIGN_TLOG_UPLOAD=false COSIGN_USE_SIGNING_CONFIG=false
	cosign generate-key-pair --output-key-prefix "$work/throwaway"
	goreleaser release --snapshot --clean

	verify() { cosign verify-blob "$1" --bundle dist/checksums.txt.sigstore.json --key "$work/throwaway.pub" --insecure-ignore-tlog; }
	verify dist/checksums.txt
	{ cat dist/checksums.txt && echo; } >"$work/changed"
	if verify "$work/changed" 2>/dev/null; then fail 'the signature is good for other checksums, too'; fi
	(cd dist && sha256sum --quiet -c checksums.txt)
	for archive in dist/*.tar.gz dist/*.zip; do
		grep -q github.com/spf13/cobra "$archive.sbom.json" || fail "$archive.sbom.json does not list the modules"
	done
fi

if command -v dpkg >/dev/null 2>&1; then
	scripts/try-package.sh "$(ls dist/*_"$(dpkg --print-architecture)".deb)"
fi
if command -v rpm >/dev/null 2>&1; then
	scripts/try-package.sh "$(ls dist/*_linux_"$("$go" env GOARCH)".rpm)"
fi
if [ "$(uname -s)" = Linux ]; then
	scripts/try-image.sh "$(ls dist/linux_linux_"$("$go" env GOARCH)"*/leasehold)"
fi
