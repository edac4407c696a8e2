#!/bin/sh
# Runs every fuzz target of all modules in turn, for the given time each, because
# the Go command runs one at a time.
# usage: fuzz.sh TIME, such as 10s
set -eu

list=$(go list -f '{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}' work | while read -r package file; do
	sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$package \1|p" "$file"
done)

out=$(mktemp)
trap 'rm -f "$out"' EXIT

# fuzz runs one target and fails if the target fails. Sometimes the Go command
# reports the end of the fuzzing time as a failure, without an input that failed.
# The target then runs once more.
fuzz() {
	for attempt in 1 2; do
		if go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" "$1" >"$out" 2>&1 </dev/null; then
			return 0
		fi
		grep -q 'context deadline exceeded' "$out" && ! grep -q 'Failing input written' "$out" || return 1
	done
	return 1
}

n=0
while read -r package target; do
	[ -n "$package" ] || continue
	n=$((n + 1))
	echo "fuzz $package $target ($1)"
	if ! fuzz "$package" "$target" "$1"; then
		cat "$out" >&2
		exit 1
	fi
done <<END
$list
END
echo "$n fuzz targets"
