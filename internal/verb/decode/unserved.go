package decode

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unserved has a line for each version of kinds that kube-apiserver knows and does not serve: those of releases before,
// and those that are no objects. test/oracle-builtins compares it with Kubernetes' scheme.
//
//go:embed unserved.txt
var unserved string

// unservedKinds are those of unserved.
var unservedKinds = sync.OnceValue(func() map[schema.GroupVersionKind]bool {
	all := map[schema.GroupVersionKind]bool{}
	for line := range strings.Lines(unserved) {
		words := strings.Fields(line)
		for _, kind := range words[1:] {
			all[schema.FromAPIVersionAndKind(words[0], kind)] = true
		}
	}
	return all
})

// isUnserved reports whether kube-apiserver knows the kind, or has lists of it, without serving it.
func isUnserved(kind schema.GroupVersionKind) bool {
	known := unservedKinds()
	return known[kind] || known[kind.GroupVersion().WithKind(strings.TrimSuffix(kind.Kind, "List"))]
}

// options are the kinds that each group and version has besides its own.
var options = []string{
	"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent",
}

func isOptions(kind string) bool { return slices.Contains(options, kind) }

// extensionsPackages are the packages of kube's unversioned types of what the group extensions once had.
var extensionsPackages = map[string]string{
	"DaemonSet": "apps", "Deployment": "apps", "DeploymentRollback": "apps", "ReplicaSet": "apps",
	"Ingress": "networking", "NetworkPolicy": "networking",
}
