package lint

import (
	"strings"
	"testing"
)

// layers is the import order, the lowest first. A package may import those on the lines above its own; those on one
// line do not know each other. docs/design/imports.md says why each line is where it is.
var layers = [][]string{
	// Know nothing of ours: parsing URLs, certificates, etcd, decoded JSON, schemas, expressions about devices, who
	// leads.
	{"internal/request", "internal/auth/pki", "internal/storage/store", "internal/object", "internal/object/schema",
		"internal/kinds/resource/selector", "internal/control/leaseelection"},
	// Moves a store's data into files and back, for the command line.
	{"internal/storage/backup"},
	// Rules are checked against a schema; the view is fed by the store; the catalog holds schemas.
	{"internal/object/schema/cel", "internal/storage/watchcache", "internal/api/catalog"},
	// Calls webhooks over HTTPS, where services in the view say; it knows neither conversion nor admission.
	{"internal/net/webhook"},
	// What can be done with a definition or an object of it, and no request at hand.
	{"internal/api/apply", "internal/object/codec", "internal/api/crd"},
	// Converts what codec decodes, by webhooks.
	{"internal/api/convert"},
	// Who asks, and may they. Needs a parsed request and no object.
	{"internal/auth/authn", "internal/auth/authz", "internal/auth/serviceaccount"},
	// The kinds that ship are checked as a definition is; documents and tables are made of the catalog.
	// Admission, from what a write looks like down to the plugins; builtin refuses configuration that they could not
	// use.
	{"internal/admit"},
	{"internal/admit/configuration", "internal/admit/expr", "internal/admit/match", "internal/admit/source"},
	{"internal/admit/registration"},
	{"internal/kinds/check"},
	{"internal/admit/hook", "internal/kinds/plugin", "internal/admit/policy", "internal/kinds",
		"internal/api/discovery", "internal/api/openapi", "internal/api/table"},
	// Its plugin that counts by the catalog.
	{"internal/kinds/core/quota"},
	// Writes what builtin's schemas are made from, by hand; not in the binary.
	{"internal/kinds/gen"},
	// The verbs.
	{"internal/rest"},
	// Gives services what the verbs ask for.
	{"internal/kinds/network/address"},
	// Act through the verbs, as users do; answer questions that the verbs decode; find out what they are to show.
	{"internal/storage/storagemetrics", "internal/kinds/core/componentstatus", "internal/control",
		"internal/kinds/certificates/csrmetrics", "internal/kinds/auth/review", "internal/front/pages"},
	// Takes requests and hands them on, as functions; it knows no verb.
	{"internal/front"},
	// Puts all of this together.
	{"."},
	// Run it.
	{"cmd/bowsprit", "testserver", "testserver/bare"},
}

// ownCorners are packages that only one other package may import.
var ownCorners = map[string]string{"internal/object/schema/cel/rulegen": "internal/object/schema/cel"}

func TestImportOrder(t *testing.T) {
	level := map[string]int{}
	for i, layer := range layers {
		for _, pkg := range layer {
			level[pkg] = i
		}
	}
	seen := map[string]bool{}
	for _, f := range sources(t) {
		if f.test { // a test may look at its package from above
			continue
		}
		seen[f.pkg] = true
		mine, listed := level[f.pkg]
		if !listed && ownCorners[f.pkg] == "" && f.pkg != "internal/lint" {
			t.Errorf("%s: package %s has no place in the import order; give it one in layers", f.path, f.pkg)
			continue
		}
		for _, imported := range f.imports {
			if !within(imported, module) {
				continue
			}
			pkg := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
			if pkg == "" {
				pkg = "."
			}
			if owner, ok := ownCorners[pkg]; ok {
				if f.pkg != owner {
					t.Errorf("%s imports %s, which belongs to %s", f.path, pkg, owner)
				}
				continue
			}
			if theirs, ok := level[pkg]; ok && theirs >= mine {
				t.Errorf("%s imports %s, which is not below %s in the import order", f.path, pkg, f.pkg)
			}
		}
	}
	for pkg := range level {
		if !seen[pkg] {
			t.Errorf("layers lists %s, which has no Go files", pkg)
		}
	}
}
