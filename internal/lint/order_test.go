package lint

import (
	"strings"
	"testing"
)

// floors is the import order, the lowest first. A package belongs to the floor with the longest matching path prefix.
// It may import packages of lower floors, and its neighbours in the same folder. docs/design/imports.md explains each
// floor.
var floors = [][]string{
	{"docs"}, // pages
	// A URL, an object, a file, another program's answer: nothing of ours.
	{"internal/request", "internal/object", "internal/storage/durable", "internal/net/foreign"},
	{"internal/auth/pki"},                  // certificates
	{"internal/storage"},                   // etcd, and the view of it that everything reads
	{"internal/auth"},                      // authentication and authorization
	{"internal/api/catalog"},               // the served resources
	{"internal/net"},                       // outgoing calls: webhooks, proxies, addresses of services
	{"internal/api"},                       // definitions: publish, convert, apply
	{"internal/admit"},                     // admission of writes
	{"internal/kinds"},                     // the kinds of Kubernetes, as data
	{"internal/verb"},                      // the operations on objects
	{"internal/rest"},                      // HTTP for them
	{"internal/control", "internal/front"}, // act through the verbs; take requests and hand them on
	{"internal/part"},                      // optional additions to the core
	{"internal/feature"},                   // behaviour of single kinds: admission plugins, controllers, subresources
	{"internal/workload"},                  // simulated cluster components, as a part
	{"internal/server/config"},             // the settings of a server
	{"internal/server"},                    // puts all of it together
	{"."},                                  // the front door: names for the settings and the server
	{"extension"},                          // extension API servers, made of it
	{
		"examples", "cmd/bowsprit", "testserver", "internal/testing", "internal/lint", "test/attack", "test/journeys",
		"test/load/bare", "test/monitoring", "test/vessels", "test/wire",
	},
}

// coreEnds is the lowest floor above the core.
const coreEnds = "internal/part"

// inCore reports whether a package belongs to the core, which imports neither parts nor kinds.
func inCore(pkg string) bool {
	end, _ := floorOf(coreEnds)
	mine, folder := floorOf(pkg)
	return mine >= 0 && mine < end && folder != dataFloor
}

// dataFloor is the folder of the built-in kinds. They stand below the verbs because they are data, and beside the core
// because no core package may import them.
const dataFloor = "internal/kinds"

// dataFolders are folders that hold data and rules. Their packages import the floors up to highest, and the exceptions,
// with the reason.
var dataFolders = map[string]struct {
	highest    string
	exceptions map[string]string // reasons by "package > import"
}{
	dataFloor: {"internal/api", map[string]string{
		"internal/kinds/admission > internal/admit/registration": "a policy is valid if its expressions compile as " +
			"admission compiles them",
	}},
	"internal/server/config": {"internal/kinds", map[string]string{
		"internal/server/config > internal/front/audit":    "the options of audit logs have kube-apiserver's checks",
		"internal/server/config > internal/workload/stage": "--simulate reads kwok's Stages, which stand apart from the simulation",
	}},
}

// ownCorners are packages that only one other package may import.
var ownCorners = map[string]string{
	"internal/api/crd/rewrite":             "internal/api/crd",
	"internal/front/conn/h2":               "internal/front/conn",
	"internal/api/crd/own":                 "internal/api/crd",
	"internal/object/schema/cel/fieldpath": "internal/object/schema/cel",
	"internal/object/schema/cel/jsonpath":  "internal/api/crd/own",
	"internal/object/schema/cel/reads":     "internal/object/schema/cel",
	"internal/object/schema/cel/plain":     "internal/object/schema/cel",
	"internal/object/schema/cel/maxcost":   "internal/object/schema/cel",
	"internal/object/schema/cel/rulegen":   "internal/object/schema/cel",
}

// floorOf returns the floor of a package and the folder that puts it there; -1 if no folder does.
func floorOf(pkg string) (floor int, folder string) {
	floor = -1
	for i, folders := range floors {
		for _, f := range folders {
			if (pkg == f || strings.HasPrefix(pkg, f+"/")) && len(f) > len(folder) {
				floor, folder = i, f
			}
		}
	}
	return floor, folder
}

// local returns the path of a package of this module from its root, and whether it is one.
func local(imported string) (string, bool) {
	if !within(imported, module) {
		return "", false
	}
	if imported == module {
		return ".", true
	}
	return strings.TrimPrefix(imported, module+"/"), true
}

func TestImportOrder(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.test { // a test may look at its package from above
			continue
		}
		mine, folder := floorOf(f.pkg)
		used[folder] = true
		if mine < 0 {
			t.Errorf("%s: package %s has no place in the import order; give it one in floors", f.path, f.pkg)
			continue
		}
		for _, imported := range f.imports {
			pkg, ok := local(imported)
			if !ok {
				continue
			}
			if owner, ok := ownCorners[pkg]; ok && f.pkg != owner {
				t.Errorf("%s imports %s, which belongs to %s", f.path, pkg, owner)
			}
			theirs, neighbour := floorOf(pkg)
			if theirs > mine || theirs == mine && neighbour != folder && folder != "testserver" &&
				folder != "internal/testing" {
				t.Errorf("%s imports %s, which is not below %s in the import order", f.path, pkg, f.pkg)
			}
		}
	}
	for _, folders := range floors {
		for _, folder := range folders {
			if !used[folder] {
				t.Errorf("floors lists %s, which has no Go files", folder)
			}
		}
	}
}

// TestCoreKnowsNoParts holds that no core package imports a kind or a part.
func TestCoreKnowsNoParts(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || !inCore(f.pkg) {
			continue
		}
		for _, imported := range f.imports {
			if pkg, ok := local(imported); ok && !inCore(pkg) {
				t.Errorf("%s: the core imports %s: hand over a function, or let a part do it", f.path, pkg)
			}
		}
	}
}

// TestDataFolders holds that kinds and settings import nothing that acts: no verbs, no controllers, no servers.
func TestDataFolders(t *testing.T) {
	for folder, data := range dataFolders {
		highest, _ := floorOf(data.highest)
		used := map[string]bool{}
		for _, f := range sources(t) {
			if f.test || !within(f.pkg, folder) {
				continue
			}
			for _, imported := range f.imports {
				pkg, ok := local(imported)
				if floor, _ := floorOf(pkg); !ok || floor <= highest || within(pkg, folder) {
					continue
				}
				exception := f.pkg + " > " + pkg
				if data.exceptions[exception] == "" {
					t.Errorf("%s imports %s: %s holds data", f.path, pkg, folder)
				}
				used[exception] = true
			}
		}
		for exception := range data.exceptions {
			if !used[exception] {
				t.Errorf("%s is no import any more: remove it from dataFolders", exception)
			}
		}
	}
}
