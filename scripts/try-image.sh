#!/bin/sh
# Builds the container image on an empty base, with docker or with buildah (as root), and
# runs a command under a lock in it. Without both it says so and succeeds.
# usage: try-image.sh BINARY, which is static
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/context" "$work/locks"
cp "$1" "$work/context/leasehold"
chmod 777 "$work/locks"

if docker info >/dev/null 2>&1; then
	docker build -q --build-arg BASE=scratch -f packaging/Dockerfile -t leasehold-try "$work/context" >/dev/null
	said=$(docker run --rm -v "$work/locks:/locks" leasehold-try run hello --store file:/locks/held?shared=true -- /usr/bin/leasehold --version)
	user=$(docker image inspect --format '{{.Config.User}}' leasehold-try)
	docker image rm leasehold-try >/dev/null
elif command -v buildah >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
	b() { STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot buildah --root "$work/images" --runroot "$work/run" "$@"; }
	b bud -q --build-arg BASE=scratch -f packaging/Dockerfile -t leasehold-try "$work/context" >/dev/null
	made=$(b from leasehold-try)
	said=$(b run -v "$work/locks:/locks" "$made" -- /usr/bin/leasehold run hello --store 'file:/locks/held?shared=true' -- /usr/bin/leasehold --version)
	user=$(b inspect --format '{{.OCIv1.Config.User}}' "$made")
	b rm "$made" >/dev/null
else
	echo 'try-image: there is neither docker nor buildah: the image is not tried' >&2
	exit 0
fi

case $user in
'' | 0* | root*)
	echo "try-image: the image is run by user ${user:-root}" >&2
	exit 1
	;;
esac
case $said in
'leasehold v'*) echo "try-image: $said, by user $user" >&2 ;;
*)
	echo "try-image: it said: $said" >&2
	exit 1
	;;
esac
