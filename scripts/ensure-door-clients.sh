#!/bin/sh
# Prints the folder with the lock clients of Redis for Node, Java and PHP, for the tests of the
# Redis door. It installs those that are not there yet, for this user: node-redlock with npm,
# and ShedLock with Maven (10 MB). Laravel's lock is that of the system's packages. A client that
# cannot be installed is left out, and it says what is missing.
#
# To get other versions, remove the folder and run it again.
set -eu
me=ensure-door-clients
redlock=5.0.0-beta.2
redlock4=4.2.0
ioredis=6.0.0
shedlock=7.7.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/leasehold-test/door-clients

have() { command -v "$1" >/dev/null 2>&1; }
without() { echo "$me: without $1: $2" >&2; }

mkdir -p "$dir"
if ! [ -d "$dir/node_modules/redlock4" ]; then
	if have npm; then
		(cd "$dir" && npm install --no-audit --no-fund --ignore-scripts \
			"redlock@$redlock" "redlock4@npm:redlock@$redlock4" "ioredis@$ioredis" >&2) || without node-redlock "npm failed"
	else
		without node-redlock "install nodejs and npm"
	fi
fi
if ! [ -d "$dir/shedlock" ]; then
	if have mvn && have javac; then
		new=$(mktemp -d "$dir/shedlock.XXXXXX")
		trap 'rm -rf "$new"' EXIT
		cat >"$new/pom.xml" <<-END
			<project xmlns="http://maven.apache.org/POM/4.0.0">
			  <modelVersion>4.0.0</modelVersion><groupId>door</groupId><artifactId>door</artifactId><version>1</version>
			  <dependencies>
			    <dependency><groupId>net.javacrumbs.shedlock</groupId><artifactId>shedlock-provider-redis-jedis4</artifactId><version>$shedlock</version></dependency>
			  </dependencies>
			</project>
		END
		if mvn -q -B -f "$new/pom.xml" dependency:copy-dependencies -DoutputDirectory="$new/jars" >&2; then
			mv "$new/jars" "$dir/shedlock"
		else
			without ShedLock "Maven found no shedlock-provider-redis-jedis4 $shedlock; its jars can also be put into $dir/shedlock"
		fi
	else
		without ShedLock "install maven and a JDK from 17 (Debian: maven default-jdk-headless)"
	fi
fi
have php && php -r 'exit(extension_loaded("redis") && stream_resolve_include_path("Illuminate/Redis/autoload.php") ? 0 : 1);' ||
	without "Laravel's lock" "install it (Debian: php-cli php-redis php-illuminate-redis php-illuminate-cache)"
echo "$dir"
