#!/usr/bin/env bash
# Starts and stops bin/bowsprit for ../shared/conformance, by the contract in the README.md there:
#   sut.sh start WORKDIR [flags of kube-apiserver]   sut.sh stop WORKDIR
#   sut.sh store STOREDIR                            sut.sh stop-store STOREDIR
# Servers of one SUT_STORE_DIR share one etcd (test/oracle/etcd), which the tests may read and write as well.
# Needs bin/bowsprit (make build), Go for the first run, curl and flock.
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BOWSPRIT=${BOWSPRIT:-$ROOT/bin/bowsprit}
ETCD=$ROOT/bin/conformance-etcd

die() { echo "sut.sh: $*"; exit 1; }
alive() { [ -s "$1" ] && runs "$(cat "$1")"; }
# runs PID tells whether the process has not ended. One that init has yet to bury is no more.
runs() { kill -0 "$1" 2>/dev/null && [[ $(ps -o stat= -p "$1") != Z* ]]; }

# finish PIDFILE ends the process politely, then not.
finish() {
  alive "$1" || { rm -f "$1"; return 0; }
  local pid i
  pid=$(cat "$1")
  kill "$pid" 2>/dev/null
  for i in $(seq 750); do runs "$pid" || break; sleep 0.02; done
  kill -9 "$pid" 2>/dev/null
  rm -f "$1"
}

# store DIR prints the URL of the etcd of DIR, and starts it if need be. Several tests may ask at the same time.
store() {
  mkdir -p "$1" || exit 1
  (
    flock 9
    if ! alive "$1/etcd.pid"; then
      [ -x "$ETCD" ] || (cd "$ROOT/test/oracle" && go build -o "$ETCD" ./etcd) >&2 || exit 1
      rm -f "$1/etcd.url"
      setsid "$ETCD" --data-dir "$1/etcd" >"$1/etcd.url" 2>"$1/etcd.log" </dev/null 9>&- &
      echo $! >"$1/etcd.pid"
      for _ in $(seq 300); do
        [ -s "$1/etcd.url" ] && break
        alive "$1/etcd.pid" || break
        sleep 0.1
      done
      [ -s "$1/etcd.url" ] || { cat "$1/etcd.log" >&2; exit 1; }
    fi
    cat "$1/etcd.url"
  ) 9>"$1/etcd.lock"
}

# start WORKDIR FLAGS passes on what Bowsprit knows; what is about kube-apiserver's own construction (most
# feature gates, emulated versions, its cache) is dropped.
start() {
  local dir=$1 prefix=/registry flags=() tokens=/dev/null name value url
  shift
  mkdir -p "$dir" || exit 1
  while [ $# -gt 0 ]; do
    name=${1%%=*}
    case $1 in
      --*=*) value=${1#*=}; shift ;;
      *) shift; value=true; if [ $# -gt 0 ] && [[ $1 != --* ]]; then value=$1; shift; fi ;;
    esac
    case $name in
      --etcd-prefix) prefix=$value ;;
      --service-cluster-ip-range|--service-node-port-range|--advertise-address) flags+=("$name=$value") ;;
      --feature-gates) [[ ,$value, == *,CBORServingAndStorage=true,* ]] && flags+=(--feature-gates=CBORServingAndStorage=true) ;;
      --strict-transport-security-directives | --client-ca-file) flags+=("$name=$value") ;;
      --runtime-config) flags+=("$name=$value") ;;
      --token-auth-file) tokens=$value ;;
      --disable-admission-plugins) [[ ,$value, == *,NamespaceLifecycle,* ]] && flags+=(--disable-admission-plugins=NamespaceLifecycle) ;;
    esac
  done
  url=$(store "${SUT_STORE_DIR:-$dir/store}") || die "no etcd"
  echo "$url" >"$dir/etcd-endpoint"
  { echo 'conformance,system:apiserver,system:apiserver,"system:masters"'; cat "$tokens"; } >"$dir/tokens.csv"
  rm -f "$dir/admin.kubeconfig"
  setsid "$BOWSPRIT" serve --data-dir="$dir/data" --secure-port=0 --write-kubeconfig="$dir/admin.kubeconfig" \
    --etcd-servers="$url" --etcd-prefix="$prefix" --token-auth-file="$dir/tokens.csv" "${flags[@]}" \
    >"$dir/log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  for _ in $(seq 300); do # the last thing that a start does is to say that the server is ready
    grep -q '^Bowsprit is ready at' "$dir/log" && break
    alive "$dir/pid" || { cat "$dir/log"; die "the server ended"; }
    sleep 0.05
  done
  url=$(sed -n 's/^Bowsprit is ready at //p' "$dir/log")
  [ -n "$url" ] || { cat "$dir/log"; finish "$dir/pid"; die "not ready after 15 s"; }
  sed -n 's/.*certificate-authority-data: //p' "$dir/admin.kubeconfig" | base64 -d >"$dir/ca.crt"
  cat >"$dir/kubeconfig" <<EOF
apiVersion: v1
kind: Config
current-context: conformance
clusters:
- name: conformance
  cluster: {server: "$url", certificate-authority: "$dir/ca.crt"}
users:
- name: system:apiserver
  user: {token: conformance}
contexts:
- name: conformance
  context: {cluster: conformance, user: system:apiserver}
EOF
  [ -n "${SUT_SKIP_READY:-}" ] && return 0
  curl -sf --max-time 10 --retry 20 --retry-delay 1 --retry-all-errors --cacert "$dir/ca.crt" "$url/readyz" >/dev/null && return 0
  finish "$dir/pid"
  die "/readyz is not ok"
}

command=${1:-}; shift || true
[ $# -ge 1 ] || die "usage: sut.sh start|stop|store|stop-store DIR [flags]"
case $command in
  start) start "$@" ;;
  stop) finish "$1/pid" ;;
  store) store "$1" ;;
  stop-store) finish "$1/etcd.pid" ;;
  *) die "unknown command $command" ;;
esac
