package apps

import (
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func deploymentKind() rule.Kind {
	return rule.Of[appsv1.Deployment](rule.Kind{
		Group: appsV1, Kind: "Deployment", DropGated: pod.DropGatedAt("spec", "template", "spec"),
		Plural: "deployments", Short: []string{"deploy"},
		Categories: rule.CategoryAll,
		Status:     true, Generation: true, Scale: pod.Replicas(),
		ResetFields: map[string]catalog.ResetFields{"status": rule.Except("spec", "metadata.labels")},
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(deploymentCells), Default: defaultDeployment, PrepareUpdate: prepareDeploymentUpdate,
			UnconditionalUpdate: true,
		},
		Warn: warnNamedWorkload,
	})
}

func deploymentCells(d *appsv1.Deployment, e catalog.Env) []any {
	names, images := pod.ContainerNames(d.Spec.Template.Spec.Containers)
	selects := "<invalid>"
	if s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err == nil {
		selects = s.String()
	}
	return []any{
		d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, rule.Deref(d.Spec.Replicas, 0)),
		int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas),
		rule.Ago(d.CreationTimestamp, e), names, images, selects,
	}
}

func defaultDeployment(obj object.Object) {
	pod.DefaultTemplate(obj)
	strategy := object.Child(object.Child(obj, "spec"), "strategy")
	if object.String(strategy, "type") == "RollingUpdate" {
		rolling := object.Child(strategy, "rollingUpdate")
		rule.SetDefault(rolling, "maxUnavailable", "25%")
		rule.SetDefault(rolling, "maxSurge", "25%")
	}
}

// prepareDeploymentUpdate also counts changes of annotations, which the deployment controller copies to replica sets.
func prepareDeploymentUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		rule.Keep(obj, old, "spec")
		rule.Keep(object.Child(obj, "metadata"), object.Child(old, "metadata"), "labels")
		return
	}
	rule.Keep(obj, old, "status")
	if !reflect.DeepEqual(obj["spec"], old["spec"]) ||
		!reflect.DeepEqual(object.Child(obj, "metadata")["annotations"], object.Child(old, "metadata")["annotations"]) {
		rule.RaiseGeneration(obj, old)
	}
}

// deploymentFunctions are the functions that deployment.txt names.
func deploymentFunctions() rule.Functions {
	return rule.Functions{
		"collisionCount":     collisionCount,
		"deployed":           deployed,
		"deploymentStrategy": deploymentStrategy,
		"progressDeadline":   progressDeadline,
		"replicaCounts":      replicaCounts,
		"sameSelector":       sameSelector,
	}
}
