#!/bin/sh
# journeys.sh: follows pages of the documentation in a clean Debian (test/journeys), with the package of this checkout,
# and prints the time of each. Needs root, debootstrap, unshare and ip.
set -e
cd "$(dirname "$0")/.."
for program in unshare ip; do
	command -v $program >/dev/null || { echo "journeys: skipped, $program is missing (apt-get install util-linux iproute2)"; exit 0; }
done
base=$(packaging/chroot.sh)
test -n "$base" || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd tools && go run ./release -root .. -out "$work/release" -targets "linux/$(go env GOARCH)")
code=0
JOURNEYS_CHROOT=$base JOURNEYS_RELEASE=$work/release \
	go test -count=1 -timeout 60m -v ./test/journeys >"$work/log" 2>&1 || code=$?
grep -v -e '^=== ' -e '^PASS$' "$work/log"
exit $code
