#!/bin/sh
# Tidies the go.mod and go.sum of every module. "go mod tidy" knows one module and no
# go.work, so go.mod says where the others are while it runs.
# usage: tidy.sh [VERSION], which becomes the version in which they require each other
set -eu
cd "$(dirname "$0")/.."

modules=$( (go list -m -f '{{.Path}}={{.Dir}}' && cd adapters && go list -m -f '{{.Path}}={{.Dir}}' && cd ../bench && go list -m -f '{{.Path}}={{.Dir}}') | sort -u)
if [ $# -gt 0 ]; then
	for file in go.work adapters/go.work bench/go.work $(echo "$modules" | sed 's,.*=,,; s,$,/go.mod,'); do
		sed -E "s,(github.com/leasehold-dev/leasehold[^ ]*) v[0-9][^ ]*,\1 $1," "$file" >"$file.new"
		mv "$file.new" "$file"
	done
fi

for m in $modules; do
	cd "${m#*=}"
	for other in $modules; do
		[ "$other" = "$m" ] || go mod edit -replace "$other"
	done
	code=0
	GOWORK=off go mod tidy || code=$?
	for other in $modules; do
		go mod edit -dropreplace "${other%%=*}"
	done
	[ $code = 0 ] || exit $code
	echo "tidy: ${m%%=*}"
done
