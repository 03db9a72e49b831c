#!/bin/sh
# twice.sh [TARGETS]: builds a release in this directory, and one from a copy of the commit in another; fails unless both
# have the same bytes.
set -e
cd "$(dirname "$0")/.."
targets=${1:-linux/amd64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet . "$work/another-place"
(cd tools && go run ./release -root .. -out "$work/one" -targets "$targets")
(cd "$work/another-place/tools" && go run ./release -root .. -out "$work/two" -targets "$targets")
diff "$work/one/SHA256SUMS" "$work/two/SHA256SUMS"
diff -r "$work/one" "$work/two"
echo "The same bytes twice:"
cat "$work/one/SHA256SUMS"
