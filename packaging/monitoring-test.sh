#!/bin/sh
# monitoring-test.sh: tests the alert rules and the dashboard with a real Prometheus (test/monitoring): the one in PATH, or
# Debian's package, unpacked into bin/prometheus without installing it. Needs bin/bowsprit.
set -e
cd "$(dirname "$0")/.."
dir=$PWD/bin/prometheus/usr/bin
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
	dir=$(dirname "$(command -v prometheus)")
elif [ ! -x "$dir/prometheus" ]; then
	command -v apt-get >/dev/null || { echo "monitoring-test: skipped, Prometheus is missing, and there is no apt-get to fetch it"; exit 0; }
	mkdir -p bin/prometheus
	(cd bin/prometheus && apt-get download -q prometheus && dpkg-deb -x prometheus_*.deb .) ||
		{ echo "monitoring-test: skipped, the package prometheus cannot be fetched (apt-get update?)"; exit 0; }
fi
"$dir/prometheus" --version | head -1
PROMETHEUS=$dir BOWSPRIT=$PWD/bin/bowsprit go test -count=1 -timeout 10m ./test/monitoring
