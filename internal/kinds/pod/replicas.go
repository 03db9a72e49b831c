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

// Replicas is the scale of the kinds whose selector is a label selector.
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

// TemplateSpec is where most kinds that make pods say what is in them.
var TemplateSpec = []string{"spec", "template", "spec"}

// CheckSelected wants a template whose pods the selector selects.
func CheckSelected(val *rule.Validation, s labels.Selector, template object.Object, path *field.Path) {
	own := rule.StringMap(object.Map(template, "metadata")["labels"])
	if !s.Matches(labels.Set(own)) {
		val.Invalid(path.Child("metadata", "labels"), own, "`selector` does not match template `labels`")
	}
}

// CheckUntilDeleted wants pods that run until they are deleted.
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

// CheckNoMore wants the named counts of a status to be at most replicas, and availableReplicas at most readyReplicas;
// thanReady is what the second error says.
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

// replicasFunctions are those that replicas.txt names.
func replicasFunctions() rule.Functions {
	return rule.Functions{
		"replicaSetCounts": replicaSetCounts,
	}
}
