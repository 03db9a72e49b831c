#!/bin/sh
# Generates the typed client, informers and listers of api/ with Kubernetes' generators, like the author of an operator.
set -eu
cd "$(dirname "$0")"
module=github.com/bowsprit/bowsprit/test/clients
tool() { name=$1; shift; go run "k8s.io/code-generator/cmd/$name@v0.36.3" "$@"; }
tool deepcopy-gen --output-file zz_generated.deepcopy.go ./api/stable/v1
tool client-gen --fake-clientset=false --clientset-name versioned --input-base "$module/api" --input stable/v1 --output-dir generated/clientset --output-pkg $module/generated/clientset
tool lister-gen --output-dir generated/listers --output-pkg $module/generated/listers ./api/stable/v1
tool informer-gen --versioned-clientset-package $module/generated/clientset/versioned --listers-package $module/generated/listers \
  --output-dir generated/informers --output-pkg $module/generated/informers ./api/stable/v1
