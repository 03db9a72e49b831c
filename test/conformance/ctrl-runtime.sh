#!/usr/bin/env bash
# Runs controller-runtime's own specs against bin/bowsprit as envtest's control plane, by ../shared/conformance.
# Usage: ctrl-runtime.sh HARNESS [flags of run-ctrl-runtime.sh]
set -eu
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
HARNESS=$1; shift
export CONFORMANCE_TMP=${CONFORMANCE_TMP:-/tmp/conformance} KUBEBUILDER_ASSETS=$ROOT/bin/envtest
"${BOWSPRIT:-$ROOT/bin/bowsprit}" envtest "$KUBEBUILDER_ASSETS" >/dev/null
[ -d "$CONFORMANCE_TMP/tests/ctrl-runtime" ] || "$HARNESS/generate.sh" ctrl-runtime
# Module archives do not preserve execute permissions; three specs run these scripts.
chmod +x "$CONFORMANCE_TMP"/src/controller-runtime/pkg/internal/testing/controlplane/testdata/*.sh
exec "$HARNESS/run-ctrl-runtime.sh" "$@"
