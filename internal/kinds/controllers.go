package kinds

import (
	"maps"
	"slices"
	"strings"
)

// ControllerName returns the name of a controller for one of those that it had in Kubernetes before 1.28, and that
// kube-controller-manager still takes. kubeadm says "*,bootstrapsigner,tokencleaner". A minus before it stays.
func ControllerName(name string) string {
	short, minus := strings.CutPrefix(name, "-")
	full, ok := controllerAliases[short]
	switch {
	case !ok:
		return name
	case minus:
		return "-" + full
	}
	return full
}

// ControllerNames returns the names of controllers as ControllerName does.
func ControllerNames(enabled []string) []string {
	out := slices.Clone(enabled)
	for i, name := range out {
		out[i] = ControllerName(name)
	}
	return out
}

// controllerAliases are the names of controllers by those that they had.
var controllerAliases = map[string]string{
	"bootstrapsigner":         "bootstrap-signer-controller",
	"clusterrole-aggregation": "clusterrole-aggregation-controller",
	"csrapproving":            "certificatesigningrequest-approving-controller",
	"csrcleaner":              "certificatesigningrequest-cleaner-controller",
	"csrsigning":              "certificatesigningrequest-signing-controller",
	"garbagecollector":        "garbage-collector-controller",
	"namespace":               "namespace-controller",
	"podgc":                   "pod-garbage-collector-controller",
	"pv-protection":           "persistentvolume-protection-controller",
	"pvc-protection":          "persistentvolumeclaim-protection-controller",
	"resourcequota":           "resourcequota-controller",
	"root-ca-cert-publisher":  "root-ca-certificate-publisher-controller",
	"serviceaccount":          "serviceaccount-controller",
	"serviceaccount-token":    "serviceaccount-token-controller",
	"storage-version-gc":      "storageversion-garbage-collector-controller",
	"svm":                     "storage-version-migrator-controller",
	"tokencleaner":            "token-cleaner-controller",
}

// ControllerAliases returns the short names that ControllerName knows, sorted.
func ControllerAliases() []string { return slices.Sorted(maps.Keys(controllerAliases)) }
