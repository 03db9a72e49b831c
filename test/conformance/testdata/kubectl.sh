# What hack/make-rules/test-cmd.sh of k8s.io/kubernetes does, with programs that are there already. Runs in the sources of Kubernetes; kubectl.sh
# sets KUBE_APISERVER, ETCD, LOGS and WHAT.
set -o errexit -o nounset -o pipefail

free() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }

export KUBE_JUNIT_REPORT_DIR=$LOGS/junit ALLOW_SKEW=1 TMPDIR=$LOGS/tmp
mkdir -p "$KUBE_JUNIT_REPORT_DIR" "$TMPDIR"
ETCD_PORT=$(free) SECURE_API_PORT=$(free) SECURE_CTLRMGR_PORT=$(free) PEER_PORT=$(free)
export ETCD_HOST=127.0.0.1 ETCD_PORT SECURE_API_PORT SECURE_CTLRMGR_PORT
source hack/lib/init.sh
source hack/lib/test.sh
source test/cmd/legacy-script.sh
make() { :; }
kube::etcd::start() {
  "$ETCD" --data-dir "$LOGS/etcd" --advertise-client-urls "http://127.0.0.1:$ETCD_PORT" --listen-client-urls "http://127.0.0.1:$ETCD_PORT" \
    --listen-peer-urls "http://127.0.0.1:$PEER_PORT" >"$LOGS/etcd.log" 2>&1 &
  ETCD_PID=$!
}
kube::etcd::cleanup() { kill "$ETCD_PID"; wait "$ETCD_PID" || true; rm -rf "$LOGS/etcd" "$TMPDIR"; }

setup
key=$LOGS/tmp/serviceaccount.key
openssl genrsa -out "$key" 2048 2>/dev/null
"$KUBE_APISERVER" --bind-address=127.0.0.1 --authorization-mode=RBAC,AlwaysAllow --secure-port="$SECURE_API_PORT" \
  --enable-admission-plugins=LimitRanger,ResourceQuota \
  --disable-admission-plugins=ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,StorageObjectInUseProtection \
  --etcd-servers="http://127.0.0.1:$ETCD_PORT" --runtime-config=api/v1 --service-account-key-file="$key" --service-account-lookup=true \
  --service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file="$key" --cert-dir="$LOGS/tmp" \
  --service-cluster-ip-range=10.0.0.0/24 --client-ca-file=hack/testdata/ca/ca.crt --token-auth-file=hack/testdata/auth-tokens.csv >"$LOGS/server.log" 2>&1 &
export APISERVER_PID=$!
kube::util::wait_for_url_with_bearer_token "https://127.0.0.1:$SECURE_API_PORT/healthz" admin-token apiserver
cat >"$LOGS/tmp/controller-manager.kubeconfig" <<END
apiVersion: v1
kind: Config
users: [{name: controller-manager, user: {token: admin-token}}]
clusters: [{name: local, cluster: {server: "https://127.0.0.1:$SECURE_API_PORT", insecure-skip-tls-verify: true}}]
contexts: [{name: local, context: {cluster: local, user: controller-manager}}]
current-context: local
END
kube-controller-manager --kubeconfig="$LOGS/tmp/controller-manager.kubeconfig" --secure-port="$SECURE_CTLRMGR_PORT" \
  --cluster-signing-cert-file=hack/testdata/ca/ca.crt --cluster-signing-key-file=hack/testdata/ca/ca.key >"$LOGS/controllers.log" 2>&1 &
export CTLRMGR_PID=$!
kube::util::wait_for_url "https://127.0.0.1:$SECURE_CTLRMGR_PORT/healthz" controller-manager
kubectl create -f - <<END
{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "127.0.0.1", "annotations": {"save-managers": "true"}}, "status": {"capacity": {"memory": "1Gi"}}}
END
export SUPPORTED_RESOURCES=("*")
runTests # not in a subshell, in which a failing command would not end a test
