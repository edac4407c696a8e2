# Sourced by the scripts that install a server for the tests. They first set:
#   me=NAME-OF-THE-SCRIPT  apt=PACKAGES  dnf=PACKAGE  apk=PACKAGE  brew=PACKAGE
#   service=NAME-OF-THE-SERVICE that Debian starts by itself, if any
#   give_up: a function that says what to install, and ends the script
# and then call install, which never asks a question: it gives up instead.

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run executes a command and prints its output only if it fails.
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
		run $root apt-get -o DPkg::Lock::Timeout=300 update || true # an old package list is good enough, if there is one
		run $root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $apt || give_up
		# Debian starts what it installs. The tests start servers of their own, so
		# stop this one. The package was not here before, so nobody uses the
		# service yet.
		if [ -z "$service" ]; then
			return
		fi
		if [ -d /run/systemd/system ]; then
			run $root systemctl disable --now "$service" || true
		elif command -v service >/dev/null 2>&1; then
			run $root service "$service" stop || true
		fi
	elif command -v dnf >/dev/null 2>&1; then
		echo "$me: dnf install $dnf" >&2
		run $root dnf install -y $dnf || give_up
	elif command -v apk >/dev/null 2>&1; then
		echo "$me: apk add $apk" >&2
		run $root apk add $apk || give_up
	else
		give_up
	fi
}
