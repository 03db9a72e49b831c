# Functions for the scripts of this directory. The calling script sets loadgen, and in "of" the processes of each server
# that count for its CPU time.
dir=$(mktemp -d)
pids=()
declare -A of
finish() {
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait
	rm -rf "$dir"
}
trap finish EXIT

# await FILE PATTERN: waits until FILE has a line that matches PATTERN
await() {
	for _ in $(seq 3000); do
		grep -q "$2" "$1" 2>/dev/null && return
		sleep 0.01
	done
	echo "nothing like $2 in $1:" >&2
	tail -5 "$1" >&2
	exit 1
}

# ticks NAME: CPU time of its processes, in hundredths of a second
ticks() {
	local sum=0 pid
	for pid in ${of[$1]}; do sum=$((sum + $(awk '{print $14 + $15}' "/proc/$pid/stat"))); done
	echo $sum
}

# measure NAME OPERATION...: one line of results, from loadgen with the kubeconfig $dir/NAME.kubeconfig
measure() {
	local name=$1 before after line
	shift
	before=$(ticks "$name")
	line=$(timeout 300 "$loadgen" -kubeconfig "$dir/$name.kubeconfig" "$@" | tail -1)
	after=$(ticks "$name")
	echo "$name|$*|$((after - before))|$line" >>"$dir/results"
}
