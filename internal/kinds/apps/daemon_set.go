package apps

import (
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func daemonSetKind() rule.Kind {
	return rule.Of[appsv1.DaemonSet](rule.Kind{
		Group: appsV1, Kind: "DaemonSet", DropGated: pod.DropGatedAt("spec", "template", "spec"), Plural: "daemonsets",
		Short:      []string{"ds"},
		Categories: rule.CategoryAll,
		Status:     true, Generation: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(daemonSetCells), Default: defaultDaemonSet, PrepareCreate: prepareDaemonSetCreate,
			PrepareUpdate: prepareDaemonSetUpdate, UnconditionalUpdate: true,
		},
		Warn: warnWorkload,
	})
}

func daemonSetCells(d *appsv1.DaemonSet, e catalog.Env) []any {
	names, images := pod.ContainerNames(d.Spec.Template.Spec.Containers)
	s := d.Status
	return []any{
		d.Name, int64(s.DesiredNumberScheduled), int64(s.CurrentNumberScheduled), int64(s.NumberReady),
		int64(s.UpdatedNumberScheduled), int64(s.NumberAvailable),
		rule.LabelText(d.Spec.Template.Spec.NodeSelector), rule.Ago(d.CreationTimestamp, e), names, images,
		metav1.FormatLabelSelector(d.Spec.Selector),
	}
}

func defaultDaemonSet(obj object.Object) {
	pod.DefaultTemplate(obj)
	setTemplateGeneration(obj, templateGenerationOf(obj)) // none means 0: the client owns it
	strategy := object.Child(object.Child(obj, "spec"), "updateStrategy")
	if object.String(strategy, "type") == "RollingUpdate" {
		rolling := object.Child(strategy, "rollingUpdate")
		rule.SetDefault(rolling, "maxUnavailable", int64(1))
		rule.SetDefault(rolling, "maxSurge", int64(0))
	} else if rolling, ok := strategy["rollingUpdate"].(map[string]any); ok { // has no meaning, but is complete
		rule.SetDefault(rolling, "maxUnavailable", int64(0))
		rule.SetDefault(rolling, "maxSurge", int64(0))
	}
}

// templateGeneration counts the changes of a daemon set's template. It is a field of a version that is no longer
// served, and this annotation preserves it.
const templateGeneration = appsv1.DeprecatedTemplateGeneration

func prepareDaemonSetCreate(obj object.Object, _ catalog.Env) {
	rule.ResetStatus[appsv1.DaemonSet](obj)
	setTemplateGeneration(obj, max(1, templateGenerationOf(obj)))
}

func prepareDaemonSetUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		rule.Keep(obj, old, "spec")
		setTemplateGeneration(obj, templateGenerationOf(old))
		return
	}
	rule.Keep(obj, old, "status")
	n := templateGenerationOf(old)
	if !reflect.DeepEqual(object.Child(obj, "spec")["template"], object.Child(old, "spec")["template"]) {
		n++
	}
	setTemplateGeneration(obj, n)
	rule.CountChange(obj, old)
}

func templateGenerationOf(obj object.Object) int64 {
	n, err := strconv.ParseInt(object.String(obj, "metadata", "annotations", templateGeneration), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func setTemplateGeneration(obj object.Object, n int64) {
	meta := object.Child(obj, "metadata")
	annotations := rule.CopyOf(object.Child(meta, "annotations"))
	annotations[templateGeneration] = strconv.FormatInt(n, 10)
	meta["annotations"] = annotations
}

// daemonSetFunctions are the functions that daemon_set.txt names.
func daemonSetFunctions() rule.Functions {
	return rule.Functions{
		"daemonSetStrategy": daemonSetStrategy,
		"daemons":           daemons,
	}
}
