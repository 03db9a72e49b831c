#!/usr/bin/env bash
# Runs kubectl's own tests, test/cmd of k8s.io/kubernetes, with Kubernetes' kubectl and kube-controller-manager against bin/bowsprit instead
# of kube-apiserver and etcd. They are shell functions, run_NAME_tests, one after another in one server.
# Usage: kubectl.sh HARNESS [NAME...], for example
#   kubectl.sh ../shared/conformance pod kubectl_apply
# KUBE_APISERVER names another server: a real kube-apiserver shows the tests that fail for other reasons.
# Sources, programs and logs are kept in $CONFORMANCE_TMP/kubernetes. The first run takes some minutes to build.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
HARNESS=$(cd "$1" && pwd); shift
. "$ROOT/test/conformance/kubernetes-sources.sh"
sources "$HARNESS"
mkdir -p "$TMP/cmd" "$TMP/logs" "$SRC/_output"
(
  cd "$SRC"
  version="-X k8s.io/component-base/version.gitVersion=v$VERSION -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$VERSION")"
  go build -ldflags "-s -w $version" -o "$TMP/cmd/" ./cmd/kubectl ./cmd/kubectl-convert ./cmd/kube-controller-manager
)
ln -sfn "$TMP/cmd" "$SRC/_output/bin"
find "$SRC/test/fixtures/pkg/kubectl/plugins" "$SRC/test/cmd" "$SRC/hack" -type f -exec chmod +x {} + # a module archive does not preserve it
envtest=$(mktemp -d)
"$ROOT/bin/bowsprit" envtest "$envtest" >/dev/null
export KUBE_APISERVER=${KUBE_APISERVER:-$envtest/kube-apiserver} ETCD=$envtest/etcd ENVTEST=$envtest
export LOGS=$TMP/logs/kubectl WHAT="$*"
rm -rf "$LOGS"; mkdir -p "$LOGS"
code=0
(cd "$SRC" && exec timeout "${TEST_TIMEOUT:-3600}" bash "$ROOT/test/conformance/testdata/kubectl.sh") >"$LOGS/log" 2>&1 </dev/null || code=$?
rm -rf "$envtest"
python3 - "$LOGS/log" <<'END'
import re, sys

name, ended, last = None, {}, []
for line in open(sys.argv[1], errors="replace"):
    line = line.rstrip("\n")
    if m := re.match(r"Running command: (\S+)$", line):
        name = m[1]
        ended[name] = True
    elif m := re.match(r"Error when running (\S+)$", line):
        ended[m[1]] = False
ended.pop("record_command_canary", None)
for name, ok in ended.items():
    if not ok:
        print("FAIL", name)
print(sum(ended.values()), "passed,", len(ended) - sum(ended.values()), "failed; log:", sys.argv[1])
END
exit $code
