#!/bin/sh
# Prints the path of kube-apiserver, the API server of Kubernetes, for the tests. If there is none
# yet, it builds it from its module into a cache directory of the user, and installs nothing into the
# system. With --find it builds nothing, and prints nothing if there is none.
#
# The module requires its parts, k8s.io/api and others, in version v0.0.0, and replaces them by
# folders that the module proxy leaves out. Each is published as a module of its own.
#
# To get another version, remove the directory and run it again.
set -eu
me=ensure-kube-apiserver
version=37.2 # of Kubernetes 1.37.2, whose parts are 0.37.2
dir=${XDG_CACHE_HOME:-$HOME/.cache}/leasehold-test/kube-apiserver-1.$version
program=kube-apiserver

if [ -x "$dir/$program" ]; then
	echo "$dir/$program"
	exit 0
fi
if [ "${1-}" = --find ]; then
	exit 0
fi
mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
echo "$me: building Kubernetes 1.$version into $dir (about 10 minutes on two cores, 120 MB)" >&2
cd "$new"
export GOWORK=off GOFLAGS=-mod=mod
printf 'module apiserver\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.%s\n' "$version" >go.mod
mod=$(go mod download -json "k8s.io/kubernetes@v1.$version" | sed -n 's/^.*"GoMod": "\(.*\)".*$/\1/p')
sed -n "s,^[[:space:]]*\(k8s.io/[^ ]*\) => ./staging/.*,replace \1 => \1 v0.$version,p" "$mod" >>go.mod
go build -trimpath -ldflags='-s -w' -o "$program" k8s.io/kubernetes/cmd/kube-apiserver >&2
mv -T "$new" "$dir" 2>/dev/null || [ -x "$dir/$program" ] # or another process was faster
trap - EXIT
echo "$dir/$program"
