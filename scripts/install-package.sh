# Sourced by the scripts that make sure the tests find a server. Before it:
#   me=NAME-OF-THE-SCRIPT  apt=PACKAGE  dnf=PACKAGE  apk=PACKAGE  brew=PACKAGE
#   service=NAME-OF-THE-SERVICE that Debian starts by itself
#   give_up: says what to install, and ends the script
# Then: install. It asks nothing; where it would have to, it gives up.

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run says what it does only when it fails.
run() {
	if ! "$@" >"$log" 2>&1 </dev/null; then
		echo "$me: this failed: $*" >&2
		cat "$log" >&2
		return 1
	fi
}

install() {
	if [ "$(id -u)" = 0 ]; then
		root=
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
		root='sudo -n'
	else
		root=no
	fi
	if command -v brew >/dev/null 2>&1 && [ "$(id -u)" != 0 ]; then # brew neither needs nor wants root
		echo "$me: brew install $brew" >&2
		run brew install "$brew" || give_up
	elif [ "$root" = no ]; then
		give_up
	elif command -v apt-get >/dev/null 2>&1; then
		echo "$me: apt-get install $apt" >&2
		run $root apt-get update || true # an old list is good enough, if there is one
		run $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$apt" || give_up
		# Debian starts what it installs. The tests start servers of their own,
		# and nobody asked for one that stays on this machine. The package was
		# not here before, so the service is nobody's yet.
		if [ -d /run/systemd/system ]; then
			run $root systemctl disable --now "$service" || true
		elif command -v service >/dev/null 2>&1; then
			run $root service "$service" stop || true
		fi
	elif command -v dnf >/dev/null 2>&1; then
		echo "$me: dnf install $dnf" >&2
		run $root dnf install -y "$dnf" || give_up
	elif command -v apk >/dev/null 2>&1; then
		echo "$me: apk add $apk" >&2
		run $root apk add "$apk" || give_up
	else
		give_up
	fi
}
