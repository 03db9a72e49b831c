package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func podTemplateKind() rule.Kind {
	return rule.Of[corev1.PodTemplate](rule.Kind{
		Group: coreV1, Kind: "PodTemplate", DropGated: pod.DropGatedAt("template", "spec"), Plural: "podtemplates",
		Generation: true, ReturnsDeleted: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(podTemplateCells), Default: defaultPodTemplate, UnconditionalUpdate: true,
		},
		Warn: warnPodTemplate,
	})
}

func podTemplateCells(t *corev1.PodTemplate, _ catalog.Env) []any {
	names, images := pod.ContainerNames(t.Template.Spec.Containers)
	return []any{t.Name, names, images, rule.LabelText(t.Template.Labels)}
}

func defaultPodTemplate(obj object.Object) {
	template, _ := obj["template"].(map[string]any)
	if podSpec, ok := template["spec"].(map[string]any); ok {
		pod.DefaultSpec(podSpec)
	}
}

func warnPodTemplate(w *rule.Warnings) {
	pod.WarnTemplate(w, object.Map(w.Obj, "template"), field.NewPath("template"))
}

// podTemplateFunctions are the functions that pod_template.txt names.
func podTemplateFunctions() rule.Functions {
	return rule.Functions{
		"podTemplate": pod.Template,
	}
}
