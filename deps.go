//go:build tools

// Temporary while the first packages are written: keeps go.mod complete.
package bowsprit

import (
	_ "github.com/go-json-experiment/json/jsontext"
	_ "github.com/google/btree"
	_ "github.com/google/cel-go/cel"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/spf13/cobra"
	_ "go.etcd.io/etcd/client/v3"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	_ "gopkg.in/evanphx/json-patch.v4"
	_ "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	_ "k8s.io/apimachinery/pkg/util/managedfields"
	_ "k8s.io/apiserver/pkg/authentication/request/bearertoken"
	_ "k8s.io/apiserver/pkg/authentication/request/x509"
	_ "k8s.io/apiserver/pkg/cel/common"
	_ "k8s.io/apiserver/pkg/cel/environment"
	_ "k8s.io/client-go/rest"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "k8s.io/kube-openapi/pkg/validation/strfmt"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "sigs.k8s.io/json"
	_ "sigs.k8s.io/structured-merge-diff/v6/typed"
	_ "sigs.k8s.io/yaml"
)
