#!/bin/sh
# packages-test.sh: installs the .deb in a clean Debian, starts the command of its unit, uses the server, upgrades, removes
# and purges the package. Needs root and debootstrap (apt-get install debootstrap); MIRROR and SUITE select another Debian
# (chroot.sh).
set -e
cd "$(dirname "$0")/.."
arch=$(dpkg --print-architecture)
work=$(mktemp -d)
release() { (cd tools && go run ./release -root .. -out "$work/$1" -targets "linux/$arch" -version "$1"); }
inside() { chroot "$work/root" "$@"; }
server=
stop() { test -z "$server" || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; server=; }; }
trap 'stop; rm -rf "$work"' EXIT

base=$(packaging/chroot.sh) || exit 1
test -n "$base" || exit 0
mkdir "$work/root" && tar -C "$work/root" -xf "$base"
old=v0.0.1 new=v0.0.2
release $old
release $new
cp "$work/$old"/*.deb "$work/root/tmp/old.deb"
cp "$work/$new"/*.deb "$work/root/tmp/new.deb"

# serve starts the command of the unit as an unprivileged user, and returns when the server reports that it is ready. There
# is no systemd here: its sandbox and its socket are not tested (cmd/bowsprit tests the messages to the socket).
serve() {
	command=$(sed -n 's/^ExecStart=//p' "$work/root/usr/lib/systemd/system/bowsprit.service")
	mkdir -p "$work/root/var/lib/bowsprit"
	chown 12345:12345 "$work/root/var/lib/bowsprit"
	chmod 700 "$work/root/var/lib/bowsprit"
	sed -i 's/^secure-port: .*/secure-port: 0/' "$work/root/etc/bowsprit/bowsprit.yaml" # the machine may use the default port
	chroot --userspec=12345:12345 "$work/root" /usr/bin/env -i PATH=/usr/bin $command \
		>"$work/said" 2>&1 &
	server=$!
	i=0
	until grep -q "is ready" "$work/said"; do
		kill -0 $server || { cat "$work/said"; exit 1; }
		i=$((i + 1)); test $i -lt 600 || { echo "not ready in five minutes"; cat "$work/said"; exit 1; }
		sleep 0.5
	done
}
ctl() { inside bowsprit kubectl --kubeconfig /var/lib/bowsprit/kubeconfig "$@"; }

echo "== install"
inside dpkg -i /tmp/old.deb
inside bowsprit version | grep "$old"
inside test -f /usr/share/man/man1/bowsprit-serve.1.gz -o ! -d /usr/share/man # minimal systems omit manuals
inside test -f /usr/share/bash-completion/completions/bowsprit
inside bowsprit config check --config /etc/bowsprit/bowsprit.yaml
echo "== start and use"
serve
ctl create configmap kept --from-literal=a=b
stop
echo "== upgrade"
inside dpkg -i --force-confold /tmp/new.deb
inside bowsprit version | grep "$new"
grep -q '^secure-port: 0' "$work/root/etc/bowsprit/bowsprit.yaml" || { echo "the settings were lost"; exit 1; }
serve
test "$(ctl get configmap kept -o 'jsonpath={.data.a}')" = b
stop
echo "== remove"
inside dpkg -r bowsprit
if inside test -e /usr/bin/bowsprit; then echo "the program is still there"; exit 1; fi
inside test -f /etc/bowsprit/bowsprit.yaml
echo "== purge"
inside dpkg -P bowsprit
if inside test -e /etc/bowsprit; then echo "the settings are still there"; exit 1; fi
inside test -d /var/lib/bowsprit/etcd
echo "packages-test: installed, started, used, upgraded, removed, purged; data stays"
