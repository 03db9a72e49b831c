#!/bin/sh
# chroot.sh: prints the name of an archive with a clean Debian, bin/chroot-SUITE.tar, and creates it if it is missing. If it
# cannot, without root or debootstrap, it prints only the reason, to stderr. MIRROR and SUITE select another Debian than this
# machine's.
set -e
cd "$(dirname "$0")/.."
suite=${SUITE:-$(. /etc/os-release && echo "${VERSION_CODENAME:-trixie}")}
base=bin/chroot-$suite.tar
test "$(id -u)" = 0 || { echo "skipped: a clean Debian needs root" >&2; exit 0; }
if [ ! -f "$base" ]; then
	command -v debootstrap >/dev/null || { echo "skipped: debootstrap is missing (apt-get install debootstrap)" >&2; exit 0; }
	mkdir -p bin
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	# the pages use curl and openssl; most machines have ca-certificates with them
	debootstrap --variant=minbase --include=ca-certificates,curl,openssl "$suite" "$work/root" ${MIRROR:-} >&2
	tar -C "$work/root" -cf "$work/base.tar" .
	mv "$work/base.tar" "$base"
fi
echo "$PWD/$base"
