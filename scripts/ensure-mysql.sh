#!/bin/sh
# Prints the path of a mysqld of MySQL itself for the tests, which most systems have no
# package of: MariaDB is in its place. If there is none yet, it installs one of Debian's
# development version, with all libraries that it needs, into a cache directory of the user,
# and nothing into the system. With --find it installs nothing, and prints nothing if there
# is none.
#
# To get the current version, remove the directory and run it again.
set -eu
me=ensure-mysql
dir=${XDG_CACHE_HOME:-$HOME/.cache}/leasehold-test/mysql

if [ -x "$dir/bin/mysqld" ]; then
	echo "$dir/bin/mysqld"
	exit 0
fi
if [ "${1-}" = --find ]; then
	exit 0
fi

give_up() {
	cat >&2 <<-END
	$me: $1
	Set LEASEHOLD_MYSQLD to the path of a mysqld of MySQL 8.0 or newer instead. A mysqld
	that the system confines to the directories of its service (AppArmor) will not do.
	END
	exit 1
}

command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || give_up 'this system is not Debian'
key=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$key" ] || give_up "there is no $key"
# The mirror of this system has all versions.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sort -u | head -n 1)
[ -n "$mirror" ] || give_up 'the list of packages is empty: run "apt-get update" first'

mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
echo "$me: installing MySQL into $dir (70 MB are downloaded)" >&2

# An apt of its own, for which nothing is installed: it finds all libraries, libc too.
mkdir -p "$new/lists/partial" "$new/archives/partial" "$new/root" "$new/bin"
: >"$new/status"
echo "deb [signed-by=$key] $mirror sid main" >"$new/sources.list"
cat >"$new/apt.conf" <<END
Dir::State::status "$new/status";
Dir::State::lists "$new/lists";
Dir::Cache "$new";
Dir::Cache::archives "$new/archives";
Dir::Etc::sourcelist "$new/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
APT::Sandbox::User "";
END
export APT_CONFIG="$new/apt.conf"
{
	apt-get update &&
		apt-get install -y --download-only --no-install-recommends mysql-server-core mysql-client-core
} >"$new/log" 2>&1 </dev/null || {
	cat "$new/log" >&2
	give_up 'the packages cannot be downloaded'
}
for package in "$new"/archives/*.deb; do
	case ${package##*/} in
	perl* | libperl*) ;; # for scripts of the server that no test runs
	*) dpkg-deb -x "$package" "$new/root" ;;
	esac
done

# The programs need a newer libc than the system's: its own loader starts them.
lib=$(cd "$new/root" && echo usr/lib/*-linux-gnu*)
loader=$(cd "$new/root" && ls -d usr/lib*/ld-linux* | head -n 1)
for program in sbin/mysqld bin/mysql bin/mysqlbinlog; do
	name=${program##*/} more=
	if [ "$name" = mysqld ]; then more=' --basedir="$root/usr"'; fi
	cat >"$new/bin/$name" <<END
#!/bin/sh
root=\$(dirname "\$0")/../root
exec "\$root/$loader" --library-path "\$root/$lib" "\$root/usr/$program" "\$@"$more
END
	chmod +x "$new/bin/$name"
done
version=$("$new/bin/mysqld" --no-defaults --version 2>&1) || give_up "the server does not start: $version"

for done in "$new"/*; do
	case $done in
	*/root | */bin) ;;
	*) rm -rf "$done" ;;
	esac
done
mv -T "$new" "$dir" 2>/dev/null || [ -x "$dir/bin/mysqld" ] # or another process was faster
echo "$me: $version" >&2
echo "$dir/bin/mysqld"
