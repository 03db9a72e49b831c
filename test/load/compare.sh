#!/usr/bin/env bash
# Runs the same load on bowsprit, on a real kube-apiserver with its etcd, and on a bare handler, in turns, so that figures are comparable on any
# machine. Prints the medians of the rounds as a table.
#
#   compare.sh LOADGEN [ROUNDS]
#
# LOADGEN is the program of ../shared/loadgen. Environment variables name the others: KUBE_APISERVER (without it, its column stays empty), ETCD
# (bin/envtest/etcd), BOWSPRIT (bin/bowsprit).
set -euo pipefail
cd "$(dirname "$0")/../.."
loadgen=${1:?compare.sh LOADGEN [ROUNDS]} rounds=${2:-3}
bowsprit=${BOWSPRIT:-bin/bowsprit} etcd=${ETCD:-bin/envtest/etcd} kube=${KUBE_APISERVER:-}
. test/load/functions.sh

"$bowsprit" serve --data-dir "$dir/bowsprit" --secure-port 0 >"$dir/bowsprit.log" 2>&1 &
pids+=($!) of[bowsprit]=$!
await "$dir/bowsprit.log" ready
cp "$dir/bowsprit/kubeconfig" "$dir/bowsprit.kubeconfig"
servers=(bowsprit)

if [ -n "$kube" ]; then
	free() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }
	client=$(free) peer=$(free) port=$(free)
	"$etcd" --data-dir "$dir/etcd" --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
		--listen-peer-urls "http://127.0.0.1:$peer" >"$dir/etcd.log" 2>&1 &
	pids+=($!) of[kube]=$!
	openssl genrsa -out "$dir/sa.key" 2048 2>/dev/null
	echo 'compare,admin,,"system:masters"' >"$dir/tokens.csv"
	"$kube" --etcd-servers="http://127.0.0.1:$client" --secure-port="$port" --bind-address=127.0.0.1 --cert-dir="$dir/certs" --token-auth-file="$dir/tokens.csv" \
		--service-cluster-ip-range=10.0.0.0/24 --authorization-mode=RBAC --service-account-issuer=https://kubernetes.default.svc \
		--service-account-key-file="$dir/sa.key" --service-account-signing-key-file="$dir/sa.key" >"$dir/kube.log" 2>&1 &
	pids+=($!) of[kube]+=" $!"
	cat >"$dir/kube.kubeconfig" <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: kube, cluster: {server: "https://127.0.0.1:$port", insecure-skip-tls-verify: true}}]
		users: [{name: admin, user: {token: compare}}]
		contexts: [{name: kube, context: {cluster: kube, user: admin, namespace: default}}]
		current-context: kube
	END
	for _ in $(seq 600); do
		[ "$(curl -sk -H 'Authorization: Bearer compare' "https://127.0.0.1:$port/readyz")" = ok ] && break
		sleep 0.1
	done
	servers+=(kube)
fi

for name in "${servers[@]}"; do measure "$name" objects -n 3000 -c 16; done
go build -o "$dir/bare" ./test/load/bare
"$dir/bare" -kubeconfig "$dir/bowsprit.kubeconfig" -write-kubeconfig "$dir/bare.kubeconfig" 2>"$dir/bare.log" &
pids+=($!) of[bare]=$!
await "$dir/bare.log" answers
for work in "get -n 3000 -c 16" "list -n 40 -c 2" "page -n 200 -c 4" "field -n 1500 -c 4" "watch -w 200 -n 100" "patch -n 3000 -c 16" "apply -n 3000 -c 8"; do
	for _ in $(seq "$rounds"); do
		for name in "${servers[@]}" bare; do
			case "$name $work" in "bare patch"* | "bare apply"*) continue ;; esac
			# shellcheck disable=SC2086
			measure "$name" $work
		done
	done
done

python3 - "$dir/results" <<'END'
import collections, json, statistics, sys

runs = collections.defaultdict(lambda: collections.defaultdict(list))
for line in open(sys.argv[1]):
    name, work, ticks, result = line.rstrip("\n").split("|", 3)
    r = json.loads(result)
    runs[work][name].append((r.get("per_s") or r["events_per_s"], r["p99_ms"], int(ticks) * 10))

def cell(values):
    if not values:
        return "-"
    speed, p99, cpu = (statistics.median(v) for v in zip(*values))
    return f"{speed:,.0f}/s, p99 {p99:.1f} ms, CPU {cpu:,.0f} ms"

def ratio(a, b):
    if not a or not b:
        return "-"
    a, b = (statistics.median(v[0] for v in x) for x in (a, b))
    return f"{a / b:.2f}"

print("| work | bowsprit | kube-apiserver and etcd | times | bare handler | share |\n|---|---:|---:|---:|---:|---:|")
for work, by in runs.items():
    print(f"| `{work}` | {cell(by['bowsprit'])} | {cell(by['kube'])} | {ratio(by['bowsprit'], by['kube'])} | {cell(by['bare'])} | {ratio(by['bowsprit'], by['bare'])} |")
END
