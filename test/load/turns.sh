#!/usr/bin/env bash
# Measures the cost of a change: two binaries of bowsprit run the same operations in turns. Prints for each operation the
# medians of the rounds and the ratio after/before, for the server's CPU time, which varies less on a busy machine, and for
# the speed of the client; then the cost of start, idle and stop, and the sizes.
#
#	turns.sh LOADGEN BEFORE AFTER [ROUNDS]
#
# LOADGEN is the program of ../shared/loadgen. CRDS names a directory of definitions, which are loaded, too. OPERATIONS
# names other operations, one per line. Each turn starts a fresh server on a fresh directory, with FLAGS_BEFORE or FLAGS_AFTER.
# With USER_AFTER, a user of that name with permissions by RBAC runs the operations of AFTER instead of the administrator:
# this measures authentication, authorization and audit.
set -euo pipefail
cd "$(dirname "$0")/../.."
loadgen=${1:?turns.sh LOADGEN BEFORE AFTER [ROUNDS]} before=${2:?BEFORE is missing} after=${3:?AFTER is missing} rounds=${4:-5}
operations=${OPERATIONS:-"objects -n 3000 -c 16
get -n 3000 -c 16
list -n 30 -c 2
field -n 1500 -c 4
watch -w 200 -n 100
patch -n 3000 -c 16
apply -n 3000 -c 8"}
. test/load/functions.sh
declare -A binary=([before]=$before [after]=$after) flags=([before]=${FLAGS_BEFORE:-} [after]=${FLAGS_AFTER:-})

now() { date +%s%N; }

# memory NAME WHEN: records its resident memory, and the anonymous part
memory() {
	note "$1" "$2, KiB" "$(awk '$1 == "VmRSS:" {print $2}' "/proc/${of[$1]}/status")"
	note "$1" "$2, KiB without files" "$(awk '$1 == "RssAnon:" {print $2}' "/proc/${of[$1]}/status")"
}

# note NAME MEASURE VALUE
note() { echo "$1|$2|$3" >>"$dir/notes"; }

# turn NAME: runs one server from start to stop
turn() {
	local name=$1 start
	rm -rf "$dir/data"
	: >"$dir/log" # removes the "ready" of the last server
	start=$(now)
	# shellcheck disable=SC2086
	"${binary[$name]}" serve --data-dir "$dir/data" --secure-port 0 ${flags[$name]} >"$dir/log" 2>&1 &
	of[$name]=$! pids=($!)
	await "$dir/log" ready
	note "$name" "start, ms" $((($(now) - start) / 1000000))
	note "$name" "start, CPU ms" $(($(ticks "$name") * 10))
	cp "$dir/data/kubeconfig" "$dir/$name.kubeconfig"
	if [ $name = after ] && [ -n "${USER_AFTER:-}" ]; then
		"$after" kubectl --kubeconfig "$dir/data/kubeconfig" create -f - >/dev/null <<-END
			apiVersion: rbac.authorization.k8s.io/v1
			kind: ClusterRole
			metadata: {name: worker}
			rules:
			- {apiGroups: [bench.example.com], resources: [widgets], verbs: ["*"]}
			- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: ["*"]}
		END
		"$after" kubectl --kubeconfig "$dir/data/kubeconfig" create clusterrolebinding worker --clusterrole=worker \
			--user="$USER_AFTER" >/dev/null
		"$after" kubeconfig --data-dir "$dir/data" --user "$USER_AFTER" --group workers >"$dir/after.kubeconfig"
	fi
	sleep 5
	memory "$name" idle
	local spent
	spent=$(ticks "$name")
	sleep 5
	note "$name" "idle for 5 s, CPU ms" $((($(ticks "$name") - spent) * 10))
	while read -r work; do
		# shellcheck disable=SC2086
		measure "$name" $work
	done <<<"$operations"
	if [ -n "${CRDS:-}" ]; then measure "$name" crds -dir "$CRDS" -n 100000; fi
	memory "$name" "after the work"
	start=$(now)
	kill "${of[$name]}"
	wait "${of[$name]}" || true
	note "$name" "stop, ms" $((($(now) - start) / 1000000))
	pids=()
}

for name in before after; do note "$name" "binary, bytes" "$(stat -c %s "${binary[$name]}")"; done
for round in $(seq "$rounds"); do
	# the order alternates between rounds
	if [ $((round % 2)) = 1 ]; then order="before after"; else order="after before"; fi
	for name in $order; do turn "$name"; done
	echo "round $round of $rounds" >&2
done

python3 - "$dir/results" "$dir/notes" <<'END'
import collections, json, statistics, sys

table = collections.defaultdict(lambda: collections.defaultdict(list))
for line in open(sys.argv[1]):
    name, work, ticks, result = line.rstrip("\n").split("|", 3)
    table[f"`{work}`, CPU ms"][name].append(int(ticks) * 10)
    r = json.loads(result)
    speed = r.get("per_s") or r.get("events_per_s")
    if speed:
        table[f"`{work}`, per second"][name].append(speed)
    if "p99_ms" in r:
        table[f"`{work}`, p99 ms"][name].append(r["p99_ms"])
for line in open(sys.argv[2]):
    name, measure, value = line.rstrip("\n").split("|")
    table[measure][name].append(int(value))

def number(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"

print("| | before | after | after/before |\n|---|---:|---:|---:|")
for measure, by in sorted(table.items(), key=lambda item: "CPU" not in item[0]):
    a, b = statistics.median(by["before"]), statistics.median(by["after"])
    print(f"| {measure} | {number(a)} | {number(b)} | {f'{b / a:.3f}' if a else '-'} |")
END
