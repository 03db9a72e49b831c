package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func replicationControllerKind() rule.Kind {
	return rule.Of[corev1.ReplicationController](rule.Kind{
		Group: coreV1, Kind: "ReplicationController", DropGated: pod.DropGatedAt("spec", "template", "spec"),
		Plural: "replicationcontrollers",
		Short:  []string{"rc"}, Categories: rule.CategoryAll,
		Prefix: "controllers", Status: true, Generation: true,
		Scale: controllerReplicas(),
		Strategy: &catalog.Strategy{Cells: rule.Printed(replicationControllerCells), ValidName: rule.NameIsLong,
			Default: defaultReplicationController, UnconditionalUpdate: true, Dependents: catalog.OrphanDependents,
			FieldLabels: map[string]func(object.Object) string{"status.replicas": rule.CountAt("status", "replicas")}},
		Warn: warnReplicationController,
	})
}

func replicationControllerCells(rc *corev1.ReplicationController, e catalog.Env) []any {
	var names, images string
	if rc.Spec.Template != nil {
		names, images = pod.ContainerNames(rc.Spec.Template.Spec.Containers)
	}
	return []any{
		rc.Name, int64(rule.Deref(rc.Spec.Replicas, 0)), int64(rc.Status.Replicas), int64(rc.Status.ReadyReplicas),
		rule.Ago(rc.CreationTimestamp, e), names, images, rule.LabelText(rc.Spec.Selector),
	}
}

// controllerReplicas is the scale of a replication controller, with a map as selector.
func controllerReplicas() *catalog.Scale {
	scale := pod.Replicas()
	scale.Selector = func(obj object.Object) string {
		spec, _ := obj["spec"].(map[string]any)
		selector, _ := spec["selector"].(map[string]any)
		set := labels.Set{}
		for key, v := range selector {
			set[key], _ = v.(string)
		}
		return set.String()
	}
	return scale
}

// defaultReplicationController sets selector and labels from the template.
func defaultReplicationController(obj object.Object) {
	pod.DefaultTemplate(obj)
	spec := object.Child(obj, "spec")
	labels := pod.TemplateLabels(spec)
	if labels == nil {
		return
	}
	if selector, _ := spec["selector"].(map[string]any); len(selector) == 0 {
		spec["selector"] = runtime.DeepCopyJSON(labels)
	}
	labelLike(obj, labels)
}

// labelLike sets the labels of an object without labels to its template's.
func labelLike(obj, labels object.Object) {
	meta := object.Child(obj, "metadata")
	if have, _ := meta["labels"].(map[string]any); len(have) == 0 {
		meta["labels"] = runtime.DeepCopyJSON(labels)
	}
}

// warnReplicationController, as in Kubernetes, warns about the old template in an update.
func warnReplicationController(w *rule.Warnings) {
	w.NameIsHostname("Pod names and hostnames")
	of := w.Obj
	if w.Old != nil {
		of = w.Old
	}
	pod.WarnTemplate(w, object.Map(of, "spec", "template"), field.NewPath("spec", "template"))
}

// controlled validates selector and template of a ReplicationController.
func controlled(val *rule.Validation, p rule.Value) {
	template, path := object.Map(p.Object(), "template"), p.Path.Child("template")
	if template == nil {
		return
	}
	if s := labels.Set(rule.StringMap(p.Object()["selector"])).AsSelector(); !s.Empty() {
		pod.CheckSelected(val, s, template, path)
	}
	pod.ValidateTemplate(val, template, object.Map(template, "spec"), path)
	pod.CheckUntilDeleted(val, template, "ReplicationController", path)
}

// replicationControllerFunctions are the functions that replication_controller.txt names.
func replicationControllerFunctions() rule.Functions {
	return rule.Functions{
		"controlled": controlled,
	}
}
