#!/bin/sh
# chroot.sh: prints the name of an archive with a clean Debian, bin/chroot-SUITE.tar, which it makes if it is not there.
# Prints nothing, and says why, if it cannot be used or made: without root, without debootstrap. MIRROR and SUITE name
# another Debian than that of this machine.
set -e
cd "$(dirname "$0")/.."
suite=${SUITE:-$(. /etc/os-release && echo "${VERSION_CODENAME:-trixie}")}
base=bin/chroot-$suite.tar
test "$(id -u)" = 0 || { echo "skipped: a clean Debian needs root" >&2; exit 0; }
if [ ! -f "$base" ]; then
	command -v debootstrap >/dev/null || { echo "skipped: there is no debootstrap (apt-get install debootstrap)" >&2; exit 0; }
	mkdir -p bin
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	# curl and openssl are what pages need beside the package; ca-certificates comes with them on most machines
	debootstrap --variant=minbase --include=ca-certificates,curl,openssl "$suite" "$work/root" ${MIRROR:-} >&2
	tar -C "$work/root" -cf "$work/base.tar" .
	mv "$work/base.tar" "$base"
fi
echo "$PWD/$base"
