#!/bin/sh
# Installs a .deb or .rpm below a directory of its own, and tries what it has: the first
# command of the README without Go, the manual, the completions and the units.
# usage: try-package.sh FILE
set -eu
package=$1

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

case $(id -u)$package in
0*.deb)
	mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
	: >"$root/var/lib/dpkg/status"
	dpkg --root="$root" -i "$package" >/dev/null
	;;
*.deb) dpkg-deb -x "$package" "$root" ;;
0*.rpm) rpm --root="$root" -i --nodeps "$package" 2>/dev/null ;;
*) rpm2cpio "$package" | (cd "$root" && cpio -idm --quiet) ;;
esac
case $package in
*.deb) zsh=vendor-completions ;;
*) zsh=site-functions ;;
esac

fail() {
	echo "try-package: $*" >&2
	exit 1
}

# The README's first command is for a clone. The package has the command itself.
first=$(sed -n 's|^go run ./cmd/leasehold \(run hello .*\)|leasehold \1|p' README.md)
[ -n "$first" ] || fail 'README has no first command'
said=$(env -i HOME="$root" PATH="$root/usr/bin:/usr/bin:/bin" sh -euc "if command -v go; then exit 1; fi; $first") || fail "$first: $said"
[ "$said" = 'I hold the lock' ] || fail "$first: it said: $said"
case $("$root/usr/bin/leasehold" version) in
'leasehold v'[0-9]*) ;;
*) fail "it does not know its version: $("$root/usr/bin/leasehold" version)" ;;
esac

for file in bash-completion/completions/leasehold zsh/$zsh/_leasehold \
	fish/vendor_completions.d/leasehold.fish man/man1/leasehold.1.gz man/man1/leasehold-run.1.gz \
	doc/leasehold/copyright doc/leasehold/examples/leasehold-example.timer; do
	[ -s "$root/usr/share/$file" ] || fail "$file is missing"
done
bash -n "$root/usr/share/bash-completion/completions/leasehold"
if command -v man >/dev/null 2>&1; then
	warnings=$(man --warnings=all -l "$root/usr/share/man/man1/leasehold-run.1.gz" 2>&1 >/dev/null)
	[ -z "$warnings" ] || fail "the manual: $warnings"
fi

if command -v systemd-analyze >/dev/null 2>&1; then
	units=$root/usr/share/doc/leasehold/examples
	sed -i "s|/usr/bin/leasehold|$root/usr/bin/leasehold|" "$units"/*.service
	systemd-analyze verify --man=no "$units"/*.service "$units"/*.timer || fail 'systemd refuses a unit'
fi

if [ "$(id -u)" = 0 ]; then
	case $package in
	*.deb) dpkg --root="$root" -P leasehold >/dev/null ;;
	*) rpm --root="$root" -e leasehold 2>/dev/null ;;
	esac
	[ ! -e "$root/usr/bin/leasehold" ] || fail 'the command is still there after it was removed'
fi
echo "try-package: $(basename "$package") works" >&2
