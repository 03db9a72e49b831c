#!/usr/bin/env bash
# Runs integration tests of k8s.io/kubernetes against bin/bowsprit: all tests of test/integration that start a kube-apiserver
# can run. Tests that inspect the server's own process, or that test an intended difference, fail.
# Usage: kubernetes.sh HARNESS PACKAGE [flags of go test's binary], for example
#   kubernetes.sh ../shared/conformance apiserver/apply -test.run TestApplyStatus
# Sources, binaries and logs are kept in $CONFORMANCE_TMP/kubernetes. The first package takes some minutes to build.
set -eu
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
HARNESS=$(cd "$1" && pwd) PACKAGE=$2; shift 2
. "$ROOT/test/conformance/kubernetes-sources.sh"
export SUT_CMD=${SUT_CMD:-$ROOT/test/conformance/sut.sh} SUT_TAG=kubernetes

sources "$HARNESS"
cp -r "$ROOT/test/conformance/testdata/kubernetes/." "$SRC/"
# A test's replacement for the in-process service resolver becomes a service of type ExternalName with the same address
# (port 443: needs root).
sed -i 's/app\.SetServiceResolverForTests(/sut.SetServiceResolver(/; s/"needs-to-be-non-empty"/sut.ServiceHost()/
  s,"k8s.io/kubernetes/cmd/kube-apiserver/app"$,"conformance.local/sut",' "$SRC/test/integration/examples/apiserver_test.go"
# Several servers with different names on one machine.
sed -i 's,^\t"k8s.io/apiserver/pkg/server"$,\tserver "k8s.io/kubernetes/test/integration/framework/standin",' \
  "$SRC/test/integration/apiserver/discovery/peer_agg_discovery_test.go" \
  "$SRC/test/integration/apiserver/peerproxy/peer_proxy_test.go"
sed -i 's,^\tgenericapiserver "k8s.io/apiserver/pkg/server"$,\tgenericapiserver "k8s.io/kubernetes/test/integration/framework/standin",' \
  "$SRC/test/integration/apiserver/admissionwebhook/static_manifest_test.go" \
  "$SRC/test/integration/apiserver/cel/static_policy_test.go"
name=$(basename "$PACKAGE")
mkdir -p "$TMP/bin" "$TMP/logs"
(cd "$SRC" && go test -vet=off -c -o "$TMP/bin/$name.test" "./test/integration/$PACKAGE")
SUT_STORE_DIR=$(mktemp -d "$TMP/store.XXXXXX"); export SUT_STORE_DIR
mkdir -p "$SUT_STORE_DIR/servers"
trap '
  for d in "$SUT_STORE_DIR"/servers/*/; do [ -s "$d/pid" ] && "$SUT_CMD" stop "${d%/}"; done
  "$SUT_CMD" stop-store "$SUT_STORE_DIR"; rm -rf "$SUT_STORE_DIR"
' EXIT
KUBE_INTEGRATION_ETCD_URL=$("$SUT_CMD" store "$SUT_STORE_DIR"); export KUBE_INTEGRATION_ETCD_URL
log=$TMP/logs/${PACKAGE//\//-}.log code=0
(cd "$SRC/test/integration/$PACKAGE" && timeout "${TEST_TIMEOUT:-1200}" "$TMP/bin/$name.test" -test.v -test.timeout 0 "$@") >"$log" 2>&1 </dev/null || code=$?
grep -aE '^ *--- FAIL' "$log" || true
for result in PASS FAIL SKIP; do echo "$result $(grep -acE "^ *--- $result: " "$log" || true)"; done
echo "log: $log"
exit $code
