#!/bin/sh
# Tags the commit that is checked out as VERSION, once for each module that others may
# require, and says how to push the tags.
# usage: tag.sh VERSION
set -eu
cd "$(dirname "$0")/.."
version=${1-}

fail() {
	echo "tag: $*" >&2
	exit 1
}

echo "$version" | grep -qE '^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$' || fail "\"$version\" is no version such as v1.2.3"
[ -z "$(git status --porcelain)" ] || fail 'there are changes that are not committed'
grep -q "^## $version\$" CHANGELOG.md || fail "CHANGELOG.md has no section \"## $version\""

# The modules of benchmarks and of tests are for this repository alone.
modules=$(git ls-files '*go.mod' | grep -vE '^(bench|internal)/|test/go\.mod$')
others=$(grep -E 'github.com/leasehold-dev/leasehold[^ ]* v' $modules | grep -vF " $version" || true)
[ -z "$others" ] || fail "run make tidy VERSION=$version, and commit: these require another version:
$others"

tags=
for file in $modules; do
	git tag "${file%go.mod}$version"
	[ "$file" = go.mod ] || tags="$tags ${file%go.mod}$version"
done
cat >&2 <<END
tag: tagged $(git rev-parse --short HEAD). Push the tag of the packages last and alone: GitHub
starts no workflow for tags of which more than three are pushed at once.
  git push origin$tags
  git push origin $version
END
