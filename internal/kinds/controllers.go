package kinds

import (
	"maps"
	"slices"
	"strings"
)

// ControllerName maps a controller name from before Kubernetes 1.28, which kube-controller-manager still accepts, to
// the current one. kubeadm uses "*,bootstrapsigner,tokencleaner". A leading minus stays.
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

// controllerAliases maps former names of controllers to current ones.
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

// ControllerAliases returns the sorted former names that ControllerName accepts.
func ControllerAliases() []string { return slices.Sorted(maps.Keys(controllerAliases)) }
