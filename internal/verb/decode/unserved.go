package decode

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unserved has a line for each version of kinds that kube-apiserver registers but does not serve: kinds of earlier
// releases, and kinds without objects. A point follows a kind that has no list, although another group has one.
// test/oracle-builtins compares it with Kubernetes' scheme.
//
//go:embed unserved.txt
var unserved string

// unservedKinds returns the parsed kinds of unserved, with their lists.
var unservedKinds = sync.OnceValue(func() map[schema.GroupVersionKind]bool {
	all := map[schema.GroupVersionKind]bool{}
	for line := range strings.Lines(unserved) {
		words := strings.Fields(line)
		for _, kind := range words[1:] {
			kind, alone := strings.CutSuffix(kind, ".")
			all[schema.FromAPIVersionAndKind(words[0], kind)] = true
			if !alone {
				all[schema.FromAPIVersionAndKind(words[0], kind+"List")] = true
			}
		}
	}
	return all
})

// isUnserved reports whether kube-apiserver registers the kind, or its list, without serving it.
func isUnserved(kind schema.GroupVersionKind) bool {
	return unservedKinds()[kind]
}

// options lists the additional kinds of each group and version.
var options = []string{
	"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent",
}

func isOptions(kind string) bool { return slices.Contains(options, kind) }

// extensionsPackages names the packages of Kubernetes' unversioned types for kinds formerly in the group extensions.
var extensionsPackages = map[string]string{
	"DaemonSet": "apps", "Deployment": "apps", "DeploymentRollback": "apps", "ReplicaSet": "apps",
	"Ingress": "networking", "NetworkPolicy": "networking",
}
