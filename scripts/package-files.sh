#!/bin/sh
# Makes the manual pages and the completions that packages have.
# usage: package-files.sh DIRECTORY, whose contents it replaces
set -eu
out=$1
go=${GO:-go}

tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
"$go" build -o "$tool/leasehold" ./cmd/leasehold

rm -rf "$out"
mkdir -p "$out/man" "$out/completions"
"$tool/leasehold" man "$out/man"
gzip -9n "$out"/man/*.1
"$tool/leasehold" completion bash >"$out/completions/leasehold.bash"
"$tool/leasehold" completion zsh >"$out/completions/_leasehold"
"$tool/leasehold" completion fish >"$out/completions/leasehold.fish"
