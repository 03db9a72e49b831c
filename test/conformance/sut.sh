#!/usr/bin/env bash
# Starts and stops bin/bowsprit for ../shared/conformance, by the contract in its README.md:
#   sut.sh start WORKDIR [flags of kube-apiserver]   sut.sh stop WORKDIR
#   sut.sh store STOREDIR                            sut.sh stop-store STOREDIR
# Servers of one SUT_STORE_DIR share one etcd (test/oracle/etcd), which the tests may read and write as well.
# Needs bin/bowsprit (make build), Go for the first run, curl and flock. With KUBE_APISERVER=PATH the server is that
# kube-apiserver, for the baseline of bin/bowsprit's results. SUT_FLAGS are flags for every server.
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BOWSPRIT=${BOWSPRIT:-$ROOT/bin/bowsprit}
ETCD=$ROOT/bin/conformance-etcd

die() { echo "sut.sh: $*"; exit 1; }
alive() { [ -s "$1" ] && runs "$(cat "$1")"; }
# runs PID reports whether the process is running. A zombie is not.
runs() { kill -0 "$1" 2>/dev/null && [[ $(ps -o stat= -p "$1") != Z* ]]; }

# finish PIDFILE terminates the process, and kills it after a while.
finish() {
  alive "$1" || { rm -f "$1"; return 0; }
  local pid i
  pid=$(cat "$1")
  kill "$pid" 2>/dev/null
  for i in $(seq 750); do runs "$pid" || break; sleep 0.02; done
  kill -9 "$pid" 2>/dev/null
  rm -f "$1"
}

# store DIR prints the URL of the etcd of DIR, and starts it if necessary. Tests may call it concurrently.
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

# named COMMAND runs a command with the host name $SUT_HOSTNAME, if it is set (needs root).
named() {
  if [ -n "${SUT_HOSTNAME:-}" ]; then
    exec setsid unshare --uts sh -c 'hostname "$0" && exec "$@"' "$SUT_HOSTNAME" "$@"
  fi
  exec setsid "$@"
}

# alike gives servers with different names the same certificate, which --peer-ca-file of the tests trusts.
alike() {
  [ -n "${SUT_HOSTNAME:-}" ] || return 0
  local shared=${SUT_STORE_DIR:?}/certs
  mkdir -p "$certs"
  if [ -e "$shared/apiserver.key" ]; then
    cp "$shared/apiserver.crt" "$shared/apiserver.key" "$certs"
  else
    (umask 077; mkdir -p "$shared"; openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=peers \
      -addext "subjectAltName=IP:127.0.0.1,DNS:kubernetes.default.svc,DNS:localhost" \
      -keyout "$shared/apiserver.key" -out "$shared/apiserver.crt" 2>/dev/null) || die "no certificate"
    cp "$shared/apiserver.crt" "$shared/apiserver.key" "$certs"
  fi
}

# bowsprit DIR starts bin/bowsprit and sets url. It and kube use the variables of start.
bowsprit() {
  named "$BOWSPRIT" kube-apiserver --bind-address=127.0.0.1 --secure-port=0 --cert-dir="$certs" \
    --etcd-servers="$url" --etcd-prefix="$prefix" --token-auth-file="$1/tokens.csv" --v=2 "${flags[@]}" ${SUT_FLAGS:-} \
    >"$1/log" 2>&1 </dev/null &
  echo $! >"$1/pid"
  for _ in $(seq 1200); do
    grep -q ' msg=ready ' "$1/log" && break
    alive "$1/pid" || { cat "$1/log"; die "the server ended"; }
    sleep 0.05
  done
  url=$(sed -n 's/.* msg=ready url=\([^ ]*\).*/\1/p' "$1/log")
  [ -n "$url" ] || { cat "$1/log"; finish "$1/pid"; die "not ready after a minute"; }
}

# kube DIR starts $KUBE_APISERVER on a free port, with keys for service account tokens unless flags name some.
kube() {
  local port own=() key=$1/service-account.key
  if [[ " ${flags[*]} " != *" --service-account-key-file="* ]]; then
    openssl genrsa -out "$key" 2048 2>/dev/null || die "no key"
    own=(--service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$key"
      --service-account-signing-key-file="$key")
  fi
  for _ in 1 2 3; do
    port=$((20000 + RANDOM % 12000))
    named "$KUBE_APISERVER" --bind-address=127.0.0.1 --secure-port=$port --cert-dir="$certs" --etcd-servers="$url" \
      --etcd-prefix="$prefix" --token-auth-file="$1/tokens.csv" --v=2 "${own[@]}" ${SUT_HOSTNAME:+--peer-advertise-port=$port} "${flags[@]}" ${SUT_FLAGS:-} \
      >"$1/log" 2>&1 </dev/null &
    echo $! >"$1/pid"
    for _ in $(seq 600); do
      grep -q 'Serving securely on' "$1/log" && { url=https://127.0.0.1:$port; return 0; }
      alive "$1/pid" || break
      sleep 0.1
    done
    grep -q 'address already in use' "$1/log" || break
  done
  cat "$1/log"; finish "$1/pid"; die "not ready"
}

# start WORKDIR FLAGS starts the drop-in for kube-apiserver with the flags, except flags for storage and listeners.
start() {
  local dir=$1 prefix=/registry flags=() tokens=/dev/null certs=$1/certs name value url
  shift
  mkdir -p "$dir" || exit 1
  while [ $# -gt 0 ]; do
    name=${1%%=*}
    case $1 in
      --*=*) value=${1#*=}; shift ;;
      '') shift; continue ;; # some tests pass an empty flag
      *) shift; value=true; if [ $# -gt 0 ] && [[ $1 != --* ]]; then value=$1; shift; fi ;;
    esac
    case $name in
      --etcd-prefix) prefix=$value ;;
      --token-auth-file) tokens=$value ;;
      --cert-dir) certs=$value ;;
      --etcd-servers | --bind-address | --secure-port | --tls-cert-file | --tls-private-key-file | --logging-format | --v) ;;
      *) flags+=("$name=$value") ;;
    esac
  done
  url=$(store "${SUT_STORE_DIR:-$dir/store}") || die "no etcd"
  echo "$url" >"$dir/etcd-endpoint"
  { echo 'conformance,system:apiserver,system:apiserver,"system:masters"'; cat "$tokens"; } >"$dir/tokens.csv"
  alike
  if [ -n "${KUBE_APISERVER:-}" ]; then kube "$dir"; else bowsprit "$dir"; fi
  cat >"$dir/kubeconfig" <<EOF
apiVersion: v1
kind: Config
current-context: conformance
clusters:
- name: conformance
  cluster: {server: "$url", certificate-authority: "$certs/apiserver.crt"}
users:
- name: system:apiserver
  user: {token: conformance}
contexts:
- name: conformance
  context: {cluster: conformance, user: system:apiserver}
EOF
  [ -n "${SUT_SKIP_READY:-}" ] && return 0
  curl -sf -H "Authorization: Bearer conformance" --max-time 10 --retry 20 --retry-delay 1 --retry-all-errors --cacert "$certs/apiserver.crt" "$url/readyz" >/dev/null && return 0
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
