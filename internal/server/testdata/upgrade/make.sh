#!/bin/sh
# Writes a data directory with a version's binary, for the test that later versions open it (upgrade_test.go):
#
#   internal/server/testdata/upgrade/make.sh PATH/TO/bowsprit NAME [KUBECTL]
#
# makes NAME.tar.gz, the data of its etcd, and NAME.json, what that version has answered for each path of paths.txt, a
# line each. KUBECTL is the command of a client, that binary's own by default.
set -eu
binary=$(realpath "$1") name=$2 kubectl=${3:-$binary kubectl}
cd "$(dirname "$0")"
work=$(mktemp -d)
"$binary" serve --secure-port=0 --data-dir="$work/data" > "$work/log" 2>&1 &
server=$!
trap 'kill $server 2> /dev/null || :; rm -rf "$work"' EXIT
until grep -q 'Stop with' "$work/log"; do kill -0 $server || { cat "$work/log"; exit 1; }; sleep 0.1; done
export KUBECONFIG="$work/data/kubeconfig"
$kubectl apply --server-side -f definition.yaml
$kubectl apply --server-side -f objects.yaml
# the last write, so that none of a controller's comes after it: the server has nothing to do any more
$kubectl wait --for=condition=Established crd/tabs.example.com
while read -r path; do
  $kubectl get --raw "$path" | tr -d '\n' | sed "s,^,$path ,"
  echo
done < paths.txt > "$name.json"
kill -INT $server
wait $server || :
tar -C "$work/data" --sort=name --owner=0 --group=0 --numeric-owner -cS etcd | gzip -9n > "$name.tar.gz"
ls -l "$name.tar.gz" "$name.json"
