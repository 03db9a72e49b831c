package lint

import (
	"strings"
	"testing"
)

// only lists the packages of ours that may import a foreign path or a package below it. Tests must comply too, except
// tests in the role of a client: comparisons with etcd or Kubernetes' servers belong to test/oracle.
var only = []struct {
	foreign string
	ours    []string // folders of ours, "." for all; empty: none
	why     string
}{
	{"go.etcd.io/etcd/server/v3/etcdmain", []string{"cmd/bowsprit"}, "etcd by itself is a command"},
	{"go.etcd.io", []string{"internal/storage/store"}, "store is the only importer of etcd"},
	{"k8s.io/apiextensions-apiserver/pkg/apis", []string{"."}, ""}, // types, for everybody
	{"k8s.io/apiextensions-apiserver", nil, "of this module only the types below pkg/apis belong to the binary"},
	{"k8s.io/apiserver/pkg/cel",
		[]string{
			"internal/object/schema/cel", "internal/admit/expr", "internal/kinds/resource/selector",
			"internal/workload/stage",
		},
		"CEL is behind schema/cel, admit/expr and resource/selector, and prices of Stages behind workload/stage"},
	{"k8s.io/dynamic-resource-allocation", []string{"internal/kinds/resource/selector"},
		"expressions about devices are behind resource/selector"},
	{"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap", // objects, as data
		[]string{"internal/front/flow", "internal/kinds/flowcontrol", "internal/feature/fairness"},
		"flow control is behind front/flow"},
	{"k8s.io/apiserver/pkg/util/shufflesharding", []string{"internal/front/flow/queue"},
		"flow control is behind front/flow"},
	{"k8s.io/apiserver/pkg/apis/cel", []string{"internal/object/schema/cel", "internal/admit/expr"},
		"CEL is behind schema/cel and admit/expr"},
	{"k8s.io/apiserver/pkg/authentication/user", []string{"."}, ""}, // names of users and groups, for everybody
	{"k8s.io/apiserver/pkg/authentication/serviceaccount",
		[]string{"internal/auth/authn", "internal/auth/authz", "internal/auth/serviceaccount"},
		"identity is behind authn and authz"},
	{"k8s.io/apiserver/pkg/authorization/authorizer",
		[]string{"internal/admit/expr", "internal/auth/modes", "internal/front/audit"},
		"authorization is behind authz; CEL's library wants this interface"},
	{"k8s.io/apiserver/plugin/pkg/authenticator/token", []string{"internal/auth/token"}, foreignTokens},
	{"k8s.io/apiserver/pkg/authentication", []string{"internal/auth/token"}, foreignTokens},
	{"k8s.io/apiserver/pkg/apis/apiserver", []string{"internal/auth/token", "internal/auth/modes", "internal/net/egress"},
		foreignTokens},
	{"k8s.io/apiserver/pkg/util/webhook", []string{"internal/auth/token", "internal/auth/modes", "internal/front/audit"},
		foreignTokens},
	{"k8s.io/component-base/metrics/legacyregistry",
		[]string{"internal/front/figures", "internal/auth/token", "internal/front/audit", "internal/storage/encrypt"},
		"what imported libraries count is shown by front/figures, and read by the tests of those who use them"},
	{"k8s.io/apiserver/pkg/authorization/cel", []string{"internal/auth/modes"}, foreignModes},
	{"k8s.io/apiserver/plugin/pkg/authorizer/webhook", []string{"internal/auth/modes"}, foreignModes},
	{"k8s.io/apiserver/pkg/storage/value", []string{"internal/storage/encrypt"}, "encryption is behind storage/encrypt"},
	{"k8s.io/apiserver/pkg/server/options/encryptionconfig", []string{"internal/storage/encrypt"},
		"encryption is behind storage/encrypt; docs/design/encryption.md says why this corner of the generic server"},
	{"k8s.io/apiserver/pkg/server/healthz", []string{"internal/storage/encrypt"},
		"health checks are behind front; the library of encryption returns these"},
	{"k8s.io/apiserver/pkg/util/feature", []string{"internal/storage/encrypt"},
		"gates are settings here; the library of encryption asks this one for KMSv1"},
	{"k8s.io/kms", []string{"internal/storage/encrypt"}, "KMS plugins are behind storage/encrypt"},
	{"k8s.io/apiserver/pkg/audit", []string{"internal/front/audit"}, "auditing is behind front/audit"},
	{"k8s.io/apiserver/pkg/apis/audit/v1", []string{"internal/front"}, "auditing is behind front"}, // types
	{"k8s.io/apiserver/pkg/apis/audit", []string{"internal/front/audit"}, "auditing is behind front/audit"},
	{"k8s.io/apiserver/plugin/pkg/audit", []string{"internal/front/audit"}, "auditing is behind front/audit"},
	{"k8s.io/apiserver/pkg/util/proxy", []string{"internal/feature/kubelet"},
		"translation of streams is behind feature/kubelet"},
	{"k8s.io/apiserver/pkg/sharding", []string{"internal/verb/selector"}, "shards are behind verb/selector"},
	{"k8s.io/apiserver", nil, "Kubernetes' generic server is an oracle of test/oracle, not a part of the binary"},
	{"k8s.io/streaming", []string{"internal/feature/kubelet"}, "streams of containers are behind feature/kubelet"},
	{"k8s.io/kube-aggregator/pkg/apis", []string{"."}, ""},
	{"k8s.io/kube-aggregator", nil, "Kubernetes' aggregator is an oracle of test/oracle, not a part of the binary"},
	{"k8s.io/kubernetes", nil, "it cannot be imported as a library"},
	{"k8s.io/component-base/tracing/api", []string{"internal/net/tracing"}, "traces are sent by net/tracing"},
	{"go.opentelemetry.io/otel/exporters", []string{"internal/net/tracing"}, "traces are sent by net/tracing"},
	{"go.opentelemetry.io/otel/sdk", []string{"internal/net/tracing"}, "traces are sent by net/tracing"},
	{"k8s.io/component-base/cli", []string{"cmd/bowsprit"}, "kubectl is run as Kubernetes runs it"},
	{"k8s.io/component-base", nil, "logs, metrics and flags have their own libraries here"},
	{"github.com/google/cel-go",
		[]string{"internal/object/schema/cel", "internal/admit/expr", "internal/workload/stage"},
		"CEL is behind schema/cel and admit/expr, and what Stages have of it behind workload/stage"},
	{"github.com/itchyny/gojq", []string{"internal/workload/stage"}, "Stages are behind workload/stage"},
	{"github.com/Masterminds/sprig", []string{"internal/workload/stage"}, "Stages are behind workload/stage"},
	{"k8s.io/kubectl", []string{"cmd/bowsprit"}, "kubectl is a command"},
	{"github.com/modelcontextprotocol", []string{"cmd/bowsprit"}, "the tools of assistants are a command"},
	{"k8s.io/component-helpers/resource", nil, "it does not compile beside a newer k8s.io/api, which importers may have"},
	{"github.com/russross/blackfriday", []string{"cmd/bowsprit"}, "pages are rendered by a command; kubectl brings it"},
	{"github.com/spf13/cobra", []string{"cmd/bowsprit"}, "the command line is behind cmd/bowsprit"},
	{"github.com/spf13/pflag", []string{"cmd/bowsprit"}, "the command line is behind cmd/bowsprit"},
}

// foreignTokens is why few may import kube's authenticators.
const foreignTokens = "tokens of issuers and webhooks are behind internal/auth/token"

// foreignModes is why few may import kube's authorizers.
const foreignModes = "webhooks that decide about requests are behind internal/auth/modes"

func TestForeignImports(t *testing.T) {
	for _, f := range sources(t) {
		for _, imported := range f.imports {
			if f.test && within(imported, "k8s.io/kubectl") {
				continue
			}
			if why := refuse(f.pkg, imported); why != "" {
				t.Errorf("%s imports %s: %s", f.path, imported, why)
			}
		}
	}
}

// refuse returns why pkg may not import the path, or "". The first entry of only that covers the path decides.
func refuse(pkg, imported string) string {
	for _, rule := range only {
		if !within(imported, rule.foreign) {
			continue
		}
		for _, folder := range rule.ours {
			if folder == "." || pkg == folder || strings.HasPrefix(pkg, folder+"/") {
				return ""
			}
		}
		return rule.why
	}
	return ""
}

func TestRefuse(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		refused       bool
	}{
		{"internal/storage/store", "go.etcd.io/etcd/client/v3", false},
		{"internal/rest", "go.etcd.io/etcd/client/v3", true},
		{"internal/api/crd", "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", false},
		{"internal/api/crd", "k8s.io/apiextensions-apiserver/pkg/apiserver/schema", true},
		{"internal/api/crd", "k8s.io/apiextensions-apiserver/pkg/apisomething", true},
		{"internal/object/schema/cel", "k8s.io/apiserver/pkg/cel/library", false},
		{"internal/object/schema", "k8s.io/apiserver/pkg/cel/library", true},
		{"internal/front", "k8s.io/apiserver/pkg/authentication/user", false},
		{"internal/front", "k8s.io/apiserver/pkg/server", true},
		{"internal/rest", "k8s.io/apiserver/pkg/registry/generic", true},
		{"internal/storage/watchcache", "k8s.io/apiserver/pkg/storage/cacher", true},
		{"internal/rest", "k8s.io/apimachinery/pkg/runtime", false},
	} {
		if refused := refuse(c.pkg, c.imported) != ""; refused != c.refused {
			t.Errorf("refuse(%q, %q) = %v", c.pkg, c.imported, refused)
		}
	}
}

func TestNames(t *testing.T) {
	vague := map[string]bool{
		"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "misc": true, "base": true,
		"types": true,
	}
	for _, f := range sources(t) {
		if name := strings.TrimSuffix(f.name, "_test"); vague[name] || strings.HasSuffix(name, "util") {
			t.Errorf("%s: package %s says nothing about what is in it", f.path, f.name)
		}
	}
}

func TestNoInit(t *testing.T) {
	// The initialization of a library can only be configured before it runs.
	const first = "cmd/bowsprit/translations/"
	for _, f := range sources(t) {
		if f.inits > 0 && !strings.HasPrefix(f.path, first) {
			t.Errorf("%s has an init function: what a package needs is passed to its constructor", f.path)
		}
	}
}
