#!/usr/bin/env bash
# Runs Kubernetes' conformance tests (k8s.io/kubernetes/test/e2e, [Conformance]) against bin/bowsprit with simulated nodes:
# tests that need no running container can pass, the others are cut off after SPEC_TIMEOUT seconds.
# Usage: simulated.sh [REGEX], which selects tests by name; E2E_TEST names a built test binary, which otherwise takes ten
# minutes to build. Logs and results are kept in $CONFORMANCE_TMP/simulated.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
CHOSEN=${1:-.} SPEC_TIMEOUT=${SPEC_TIMEOUT:-90} PARALLEL=${PARALLEL:-8}
TMP=${CONFORMANCE_TMP:-/tmp/conformance}/simulated
mkdir -p "$TMP"; rm -rf "$TMP/logs" "$TMP/results" "$TMP/data"; mkdir "$TMP/logs"
E2E_TEST=${E2E_TEST:-$TMP/e2e.test}
if [ ! -x "$E2E_TEST" ]; then
  rm -rf "$TMP/programs"; cp -r "$ROOT/test/node/programs" "$TMP/programs" # has Kubernetes' modules in matching versions
  (cd "$TMP/programs" && CGO_ENABLED=0 go test -mod=mod -vet=off -c -o "$E2E_TEST" k8s.io/kubernetes/test/e2e)
fi

# A new server with four nodes; simulated.yaml defines the life of their pods.
start() {
  stop
  rm -rf "$TMP/data"
  "$BOWSPRIT" serve --data-dir "$TMP/data" --secure-port 0 --simulate=nodes=4 >>"$TMP/serve.log" 2>&1 &
  server=$!
  for _ in $(seq 600); do "$BOWSPRIT" kubectl --kubeconfig "$TMP/data/kubeconfig" get --raw /readyz >/dev/null 2>&1 && break; sleep 0.1; done
  "$BOWSPRIT" kubectl --kubeconfig "$TMP/data/kubeconfig" apply -f "$ROOT/test/conformance/testdata/simulated.yaml" >/dev/null
}
stop() {
  [ -z "$server" ] || kill "$server"
  [ -z "$server" ] || wait "$server" || true
  server=
}
server= BOWSPRIT=${BOWSPRIT:-$ROOT/bin/bowsprit}
: >"$TMP/serve.log"
trap stop EXIT
start
export E2E_TEST TMP SPEC_TIMEOUT FLAGS="--ginkgo.no-color --provider=skeleton --kubeconfig=$TMP/data/kubeconfig --disable-log-dump"

# One process for each test: some wait for minutes, and each can be cut off alone.
spec() {
  local focus log code=0
  focus=$(printf %s "$1" | sed 's/[^A-Za-z0-9 ]/./g') # a regular expression
  log=$TMP/logs/$(printf %s "$1" | md5sum | cut -c1-10).log
  # shellcheck disable=SC2086
  timeout -s INT -k 30 "$SPEC_TIMEOUT" "$E2E_TEST" $FLAGS --ginkgo.v --ginkgo.focus="$focus" >"$log" 2>&1 || code=$?
  case $code in
  0) grep -aq '^Ran 1 of' "$log" || code=none ;;
  124 | 137) code=cut ;;
  *) code=failed ;;
  esac
  printf '%s\t%s\t%s\n' "${code/#0/passed}" "$(basename "$log")" "$1" >>"$TMP/results"
}
export -f spec

"$E2E_TEST" --list-tests 2>/dev/null | sed -n 's/^ *[^ ]*\.go:[0-9]*: \(.*\[Conformance\].*\)/\1/p' | grep -E "$CHOSEN" >"$TMP/all"
grep -F '[Serial]' "$TMP/all" >"$TMP/serial" || true
grep -vF '[Serial]' "$TMP/all" >"$TMP/parallel" || true
: >"$TMP/results"
xargs -r -d '\n' -P "$PARALLEL" -n 1 bash -c 'spec "$0"' <"$TMP/parallel"
while read -r -u 3 name; do # a test that is cut off leaves taints and pods behind, so each has its own server
  start
  spec "$name"
done 3<"$TMP/serial"
sort -o "$TMP/results" "$TMP/results"
cut -f3 "$TMP/results" | grep -o '^\[[a-z-]*\]' | sort -u | while read -r sig; do
  printf '%-24s %s passed of %s\n' "$sig" "$(grep -cP "^passed\t.*\t\\$sig" "$TMP/results")" "$(grep -cP "\t\\$sig" "$TMP/results")"
done
for result in passed failed cut none; do echo "$result $(grep -c "^$result" "$TMP/results" || true)"; done
echo "results: $TMP/results"
