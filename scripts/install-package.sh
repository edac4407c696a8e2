# Sourced by the scripts that install a server for the tests. They first set:
#   me=NAME-OF-THE-SCRIPT  apt=PACKAGES  dnf=PACKAGE  apk=PACKAGE  brew=PACKAGE
#   service=NAMES-OF-SERVICES that Debian starts by itself, if any
#   give_up: a function that says what to install, and ends the script
# and then call install, which never asks a question: it gives up instead. If ensure.sh wants to
# know what a script would install, its first install says so instead, and ends the script.

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
	if [ -n "${LEASEHOLD_LACKING-}" ]; then
		echo "$apt:$service" >>"$LEASEHOLD_LACKING"
		exit 0
	fi
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
		# Debian starts what it installs. The tests start servers of their own, so stop
		# these. The packages were not here before, so nobody uses their services yet.
		for s in $service; do
			if [ -d /run/systemd/system ]; then
				run $root systemctl disable --now "$s" || true
			elif [ -e "/etc/init.d/$s" ]; then
				run $root service "$s" stop || true
			fi
		done
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
