package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// coreKinds are the resources that the core itself is about.
var coreKinds = []string{"namespaces", "customresourcedefinitions"}

// Reasons that several have.
const (
	config = "the configuration of admission"
	policy = "what requests are authorized by"
)

// namedKinds are the resources that packages of the core know by name all the same, with the reason. An entry that is
// no longer needed fails the test.
var namedKinds = map[string]map[string]string{
	"internal/admit":      {"localsubjectaccessreviews": "they may be asked in a namespace that is going"},
	"internal/admit/hook": {"mutatingwebhookconfigurations": config, "validatingwebhookconfigurations": config},
	"internal/admit/policy": {
		"mutatingadmissionpolicies": config, "mutatingadmissionpolicybindings": config,
		"validatingadmissionpolicies": config, "validatingadmissionpolicybindings": config,
	},
	"internal/auth/authz": {
		"nodes": "who impersonates a node is asked about nodes", "serviceaccounts": "and so of service accounts",
	},
	"internal/auth/rbac": {
		"roles": policy, "rolebindings": policy, "clusterroles": policy, "clusterrolebindings": policy,
	},
	"internal/auth/serviceaccount": {
		"serviceaccounts": "a token is good as long as its account is there",
		"secrets":         "and the secret that it is from",
		"pods":            "and the pod that it was made for",
	},
	"internal/auth/token": {"secrets": "bootstrap tokens are kept in them"},
	"internal/net/webhook": {
		"services": "a webhook may stand behind a service", "endpoints": "whose addresses these are",
		"endpointslices": "or these",
	},
	"internal/storage/watchcache": {"services": "kube's keys of services and endpoints have a folder more"},
	"internal/control": {
		"events": "what controllers tell of; nothing waits for those of a namespace", "leases": "replicas elect by one",
		"pods":                     "those of a namespace get their time to end before it goes",
		"storageversionmigrations": "what the migration of stored objects is asked by",
	},
}

// TestCoreKnowsNoKind searches the string literals of the core for names of built-in resources: the core treats a kind
// as data, and the packages of the kinds provide special behaviour by tables.
func TestCoreKnowsNoKind(t *testing.T) {
	resources := map[string]bool{}
	for _, r := range kinds.Resources() {
		resources[r.Plural] = !slices.Contains(coreKinds, r.Plural)
	}
	used := map[string]map[string]bool{}
	for _, f := range sources(t) {
		if f.test || !inCore(f.pkg) {
			continue
		}
		for _, text := range literals(f.tree) {
			name, _, _ := strings.Cut(text, "/")
			if !resources[name] {
				continue
			}
			if namedKinds[f.pkg][name] == "" {
				t.Errorf("%s: the core says %q; data about that kind belongs in internal/kinds, behaviour in internal/feature", f.path, text)
				continue
			}
			if used[f.pkg] == nil {
				used[f.pkg] = map[string]bool{}
			}
			used[f.pkg][name] = true
		}
	}
	for pkg, names := range namedKinds {
		for name := range names {
			if !used[pkg][name] {
				t.Errorf("%s says %q no more: remove it from namedKinds", pkg, name)
			}
		}
	}
}

// literals returns the values of the string literals of a file, except import paths.
func literals(tree *ast.File) []string {
	var out []string
	for _, decl := range tree.Decls {
		if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					out = append(out, text)
				}
			}
			return true
		})
	}
	return out
}
