# Sourced by scripts that run tests of k8s.io/kubernetes. Sets TMP, the folder of their files, and SRC, a writable copy of the sources.
VERSION=${KUBERNETES_VERSION:-1.37.2}
TMP=${CONFORMANCE_TMP:-/tmp/conformance}/kubernetes SRC=${CONFORMANCE_TMP:-/tmp/conformance}/kubernetes/src
export GOFLAGS="-mod=mod -buildvcs=false -trimpath" # as the Makefile: the modules of Kubernetes are in the build cache

export TEST_SRCDIR=$SRC TEST_WORKSPACE=trimmed

module() { (cd / && GOFLAGS= go mod download -json "$1@$2" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); }

# sources HARNESS: creates the copy if it is missing
sources() {
  [ -d "$SRC" ] && return 0
  mkdir -p "$TMP"
  rm -rf "$SRC.new"; cp -r "$(module k8s.io/kubernetes "v$VERSION")" "$SRC.new"; chmod -R u+w "$SRC.new"
  (
    cd "$SRC.new"
    rm -rf vendor go.work go.work.sum
    sed -i "s,=> \./staging/src/\(.*\),=> \1 v0.${VERSION#*.}," go.mod # the staging modules are published too
    printf '\nrequire conformance.local/sut v0.0.0\nreplace conformance.local/sut => %s/overlay/sut\n' "$1" >>go.mod
    mkdir -p staging/src/k8s.io # some tests read files that others have stored
    ln -sfn "$(module k8s.io/api "v0.${VERSION#*.}")" staging/src/k8s.io/api
    mkdir -p trimmed/k8s.io # where a test with trimmed paths finds the sources of its packages
    ln -sfn "$(module k8s.io/apiextensions-apiserver "v0.${VERSION#*.}")" trimmed/k8s.io/apiextensions-apiserver@v0.0.0
    find test/integration -name '*.sh' ! -name '*not-executable*' -exec chmod +x {} + # a module archive does not preserve it
  )
  mv "$SRC.new" "$SRC"
}
