#!/bin/sh
# systemctl for a system without systemd, for the calls of the package's installation: starts the command of the unit as an
# unprivileged user, and returns when the server reports that it is ready.
set -e
case "$*" in
"enable --now bowsprit.service") ;;
*) exit 0 ;;
esac
said=/var/log/bowsprit
command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/bowsprit.service)
install -d -m 700 -o 12345 -g 12345 /var/lib/bowsprit
setpriv --reuid=12345 --regid=12345 --clear-groups env -i PATH=/usr/bin $command >$said 2>&1 </dev/null &
until grep -q "is ready" $said; do
	kill -0 $! || {
		cat $said
		exit 1
	}
	sleep 0.05
done
