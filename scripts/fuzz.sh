#!/bin/sh
# Runs every fuzz target of all modules in turn, for the given time each, because a test
# program runs one at a time. Each package is built once. Only our packages count which of
# their code an input reaches: "go test -fuzz" compiles all packages of others for that, too,
# which takes minutes.
# usage: fuzz.sh TIME, such as 10s
set -eu

list=$(go list -f '{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}} {{.}}
{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}} {{.}}
{{end}}' work | while read -r package dir file; do
	sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$package $dir \1|p" "$dir/$file"
done)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cache=$(go env GOCACHE)/fuzz # where the Go command keeps what it has found, too

# fuzz runs one target and fails if the target fails. On a busy machine Go's fuzzer may report the
# end of the fuzzing time as a failure (golang/go#75804). That is none, if inputs were tried and none
# was written that failed.
fuzz() {
	(cd "$2" && "$tmp/test" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime "$4" -test.fuzzcachedir "$cache/$1") >"$tmp/out" 2>&1 </dev/null && return 0
	grep -qx ' *context deadline exceeded' "$tmp/out" && grep -q 'execs: [1-9]' "$tmp/out" && ! grep -qE 'Failing input written|panic' "$tmp/out"
}

n=0
built=
while read -r package dir target; do
	[ -n "$package" ] || continue
	n=$((n + 1))
	echo "fuzz $package $target ($1)"
	if [ "$built" != "$package" ]; then
		go test -c -vet=off -gcflags=github.com/leasehold-dev/leasehold/...=-d=libfuzzer -o "$tmp/test" "$package"
		built=$package
	fi
	if ! fuzz "$package" "$dir" "$target" "$1"; then
		cat "$tmp/out" >&2
		exit 1
	fi
done <<END
$list
END
echo "$n fuzz targets"
