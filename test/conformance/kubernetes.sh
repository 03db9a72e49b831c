#!/usr/bin/env bash
# Runs integration tests of k8s.io/kubernetes against bin/bowsprit: all of test/integration that start a kube-apiserver can be
# tried. Those that look into the server's own process, or are about what differs on purpose, fail.
# Usage: kubernetes.sh HARNESS PACKAGE [flags of go test's binary], for example
#   kubernetes.sh ../shared/conformance apiserver/apply -test.run TestApplyStatus
# Sources, binaries and logs are kept in $CONFORMANCE_TMP/kubernetes. The first package takes some minutes to build.
set -eu
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
HARNESS=$(cd "$1" && pwd) PACKAGE=$2; shift 2
VERSION=${KUBERNETES_VERSION:-1.36.3}
TMP=${CONFORMANCE_TMP:-/tmp/conformance}/kubernetes SRC=${CONFORMANCE_TMP:-/tmp/conformance}/kubernetes/src
export SUT_CMD=${SUT_CMD:-$ROOT/test/conformance/sut.sh} SUT_TAG=kubernetes

module() { (cd / && GOFLAGS= go mod download -json "$1@$2" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); }

sources() {
  [ -d "$SRC" ] && return 0
  mkdir -p "$TMP"
  rm -rf "$SRC.new"; cp -r "$(module k8s.io/kubernetes "v$VERSION")" "$SRC.new"; chmod -R u+w "$SRC.new"
  (
    cd "$SRC.new"
    rm -rf vendor go.work go.work.sum
    sed -i "s,=> \./staging/src/\(.*\),=> \1 v0.${VERSION#*.}," go.mod # what lies beside it in Kubernetes' repository is published, too
    printf '\nrequire conformance.local/sut v0.0.0\nreplace conformance.local/sut => %s/overlay/sut\n' "$HARNESS" >>go.mod
    mkdir -p staging/src/k8s.io # some tests read what others have stored
    ln -sfn "$(module k8s.io/api "v0.${VERSION#*.}")" staging/src/k8s.io/api
  )
  mv "$SRC.new" "$SRC"
}

sources
cp -r "$ROOT/test/conformance/testdata/kubernetes/." "$SRC/"
name=$(basename "$PACKAGE")
mkdir -p "$TMP/bin" "$TMP/logs"
(cd "$SRC" && GOFLAGS="-mod=mod -buildvcs=false" go test -vet=off -c -o "$TMP/bin/$name.test" "./test/integration/$PACKAGE")
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
