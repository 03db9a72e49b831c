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

// RunsController reports whether kube-controller-manager's flag --controllers switches a controller on. enabled holds
// names, names after a minus, "*" for all others and "-*" for no others. The first entry that names the controller
// decides, otherwise "*". Empty means all.
func RunsController(enabled []string, name string) bool {
	all := len(enabled) == 0
	for _, e := range enabled {
		switch ControllerName(e) {
		case name:
			return true
		case "-" + name:
			return false
		case "*":
			all = true
		}
	}
	return all
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
