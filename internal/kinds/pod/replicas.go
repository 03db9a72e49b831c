package pod

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Replicas is the scale of kinds with a label selector.
func Replicas() *catalog.Scale {
	return &catalog.Scale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas",
		Selector: func(obj object.Object) string {
			spec, _ := obj["spec"].(map[string]any)
			var selector metav1.LabelSelector
			in, _ := spec["selector"].(map[string]any)
			if runtime.DefaultUnstructuredConverter.FromUnstructured(in, &selector) != nil {
				return ""
			}
			s, err := metav1.LabelSelectorAsSelector(&selector)
			if err != nil {
				return ""
			}
			return s.String()
		}}
}

// TemplateSpec is the path of the pod spec in most kinds with a template.
var TemplateSpec = []string{"spec", "template", "spec"}

// CheckSelected requires a template with labels that the selector matches.
func CheckSelected(val *rule.Validation, s labels.Selector, template object.Object, path *field.Path) {
	own := rule.StringMap(object.Map(template, "metadata")["labels"])
	if !s.Matches(labels.Set(own)) {
		val.Invalid(path.Child("metadata", "labels"), own, "`selector` does not match template `labels`")
	}
}

// CheckUntilDeleted requires a template with restartPolicy Always and without activeDeadlineSeconds.
func CheckUntilDeleted(val *rule.Validation, template object.Object, of string, path *field.Path) {
	spec := object.Map(template, "spec")
	if policy := object.String(spec, "restartPolicy"); policy != "Always" {
		val.Unsupported(path.Child("spec", "restartPolicy"), policy, "Always")
	}
	if spec["activeDeadlineSeconds"] != nil {
		val.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+of+" is not Supported")
	}
}

func replicaSetCounts(val *rule.Validation, p rule.Value) {
	CheckNoMore(val, p, "cannot be greater than readyReplicas", "fullyLabeledReplicas", "readyReplicas",
		"availableReplicas")
}

// CheckNoMore requires the named counts of a status to be at most replicas, and availableReplicas to be at most
// readyReplicas; thanReady is the text of the second error.
func CheckNoMore(val *rule.Validation, p rule.Value, thanReady string, names ...string) {
	s := p.Object()
	whole, _ := object.Int(s, "replicas")
	for _, name := range names {
		if n, _ := object.Int(s, name); n > whole {
			val.Invalid(p.Path.Child(name), n, "cannot be greater than status.replicas")
		}
	}
	available, _ := object.Int(s, "availableReplicas")
	if ready, _ := object.Int(s, "readyReplicas"); available > ready {
		val.Invalid(p.Path.Child("availableReplicas"), available, thanReady)
	}
}

// replicasFunctions are the functions that replicas.txt names.
func replicasFunctions() rule.Functions {
	return rule.Functions{
		"replicaSetCounts": replicaSetCounts,
	}
}
