#!/bin/sh
# Rehearses a release: tags the last commit as VERSION in a copy of this repository, and then
# uses each module as others will, outside of a workspace, with a go command that gets it from
# the copy instead of GitHub. Nothing leaves this machine or stays in the module cache.
# usage: rehearse.sh [VERSION], that of the first section of CHANGELOG.md unless given
set -eu
cd "$(dirname "$0")/.."
version=${1:-$(sed -n 's/^## \(v[^ ]*\)$/\1/p' CHANGELOG.md | head -n 1)}
go=${GO:-go}
us=github.com/leasehold-dev/leasehold

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
	echo "rehearse: $*" >&2
	exit 1
}

git clone -q --no-tags . "$work/published"
cd "$work/published"
scripts/tidy.sh "$version" 2>"$work/tidy.log" >&2 || fail "$(cat "$work/tidy.log")"
git diff --quiet || git -c user.name=rehearse -c user.email=rehearse@example.org commit -qam "Release $version"
scripts/tag.sh "$version"
tags=$(git tag)

# Other modules may come from the cache. Ours must not, and must not stay in it: without
# -trimpath all packages of a new cache would be compiled again.
GOPROXY=file://$("$go" env GOMODCACHE)/cache/download,$("$go" env GOPROXY)
export GOPROXY GOWORK=off GOPRIVATE=$us GOFLAGS='-trimpath -modcacherw' GOMODCACHE="$work/mod" GOBIN="$work/bin"
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$work/published.insteadOf" GIT_CONFIG_VALUE_0=https://$us

# user makes an empty module for a program that uses one of ours.
user() {
	mkdir "$work/user"
	cd "$work/user"
	"$go" mod init example.org/user 2>"$work/log" || fail "$(cat "$work/log")"
}

for tag in $tags; do
	module=$us/${tag%"$version"}
	module=${module%/}
	if [ "$module" = $us/cmd/leasehold ]; then
		"$go" install "$module@$version" 2>"$work/log" || fail "$module: $(cat "$work/log")"
		case $("$work/bin/leasehold" version) in
		"leasehold $version"*) ;;
		*) fail "the command does not know its version: $("$work/bin/leasehold" version)" ;;
		esac
		said=$(HOME=$work "$work/bin/leasehold" run hello -- echo 'I hold the lock') || fail "leasehold run: $said"
	else
		user
		printf 'package user\n\nimport _ "%s"\n' "$module" >user.go
		{ "$go" get "$module@$version" && "$go" build .; } 2>"$work/log" || fail "$module: $(cat "$work/log")"
		others=$("$go" list -m -f '{{.Path}} {{.Version}}' all | grep "^$us" | grep -vF " $version" || true)
		[ -z "$others" ] || fail "$module needs $others"
		cd "$work"
		rm -r user
	fi
	echo "rehearse: $module@$version" >&2
done
