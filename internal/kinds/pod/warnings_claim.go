package pod

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// warnWholeBytes warns about fractional amounts of bytes.
func warnWholeBytes(w *rule.Warnings, amounts object.Object, path *field.Path, names ...string) {
	for _, name := range names {
		if amounts[name] == nil {
			continue
		}
		if q := rule.Quantity(amounts[name]); q.MilliValue()%1000 != 0 {
			w.Addf(path.Key(name), "fractional byte value %q is invalid, must be an integer", q.String())
		}
	}
}

// OldNodeLabels maps deprecated node labels to their warnings. It is never changed.
var OldNodeLabels = map[string]string{
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  `deprecated since v1.9`,
	"scheduler.alpha.kubernetes.io/preferAvoidPods": `deprecated since v1.22; use Taints and Tolerations instead`,
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

// OldVolumes are volume sources that no node mounts any more, in the order of Kubernetes' warnings.
var OldVolumes = [][2]string{
	{"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
	{"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
	{"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
	{"flocker", "deprecated in v1.22, non-functional in v1.25+"},
	{"storageos", "deprecated in v1.22, non-functional in v1.25+"},
	{"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
	{"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
	{"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
	{"rbd", "deprecated in v1.28, non-functional in v1.31+"},
}

// WarnNodeTerm warns about one term of a node selector. values also checks the values of its expressions, where
// validation does not.
func WarnNodeTerm(w *rule.Warnings, term object.Object, path *field.Path, values bool) {
	for i, e := range rule.Objects(term["matchExpressions"]) {
		at := path.Child("matchExpressions").Index(i)
		key := object.String(e, "key")
		if text := OldNodeLabels[key]; text != "" {
			w.Addf(at.Child("key"), "%s is %s", key, text)
		}
		if !values {
			continue
		}
		for k, value := range rule.Strings(e["values"]) {
			for _, problem := range validation.IsValidLabelValue(value) {
				w.Addf(at.Child("values").Index(k), "%s is invalid, %s", value, problem)
			}
		}
	}
}

// GoName returns the name of a volume source in Kubernetes' warnings.
func GoName(name string) string {
	if name == "storageos" {
		return "storageOS"
	}
	return name
}

// WarnClaimSpec warns about the spec of a claim.
func WarnClaimSpec(w *rule.Warnings, spec object.Object, path *field.Path) {
	for _, kind := range []string{"requests", "limits"} {
		warnWholeBytes(w, object.Map(spec, "resources", kind), path.Child("resources", kind), "storage")
	}
}
