package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func controllerRevisionKind() rule.Kind {
	return rule.Of[appsv1.ControllerRevision](rule.Kind{
		Group: appsV1, Kind: "ControllerRevision", Plural: "controllerrevisions",
		Strategy: &catalog.Strategy{Cells: rule.Printed(controllerRevisionCells), UnconditionalUpdate: true},
	})
}

func controllerRevisionCells(r *appsv1.ControllerRevision, e catalog.Env) []any {
	owner := rule.None
	if ref := metav1.GetControllerOf(r); ref != nil {
		gv, _ := schema.ParseGroupVersion(ref.APIVersion)
		owner = resourceName(gv.Group, ref.Kind, ref.Name)
	}
	return []any{r.Name, owner, r.Revision, rule.Ago(r.CreationTimestamp, e)}
}

// resourceName is "deployment.apps/x", as kubectl prints it.
func resourceName(group, kind, name string) string {
	gk := schema.GroupKind{Group: group, Kind: kind}
	if gk.Empty() {
		return name
	}
	return rule.Lower(gk.String()) + "/" + name
}

// controllerRevisionFunctions are the functions that controller_revision.txt names.
func controllerRevisionFunctions() rule.Functions {
	return rule.Functions{
		"revisionData": revisionData,
	}
}
