package apps

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func statefulSetKind() rule.Kind {
	return rule.Of[appsv1.StatefulSet](rule.Kind{
		Group: appsV1, Kind: "StatefulSet", DropGated: pod.DropGatedAt("spec", "template", "spec"),
		Plural: "statefulsets", Short: []string{"sts"},
		Categories: rule.CategoryAll,
		Status:     true, Generation: true, Scale: pod.Replicas(),
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(statefulSetCells), Default: defaultStatefulSet, PrepareCreate: prepareStatefulSetCreate,
			PrepareUpdate: prepareStatefulSetUpdate, ValidName: validation.NameIsDNSLabel, UnconditionalUpdate: true,
		},
		Warn: warnStatefulSet,
		Form: claimForm(),
	})
}

func statefulSetCells(s *appsv1.StatefulSet, e catalog.Env) []any {
	names, images := pod.ContainerNames(s.Spec.Template.Spec.Containers)
	return []any{s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, rule.Deref(s.Spec.Replicas, 0)),
		rule.Ago(s.CreationTimestamp, e), names, images}
}

// defaultStatefulSet, unlike other defaults, leaves a strategy with only a type unchanged.
func defaultStatefulSet(obj object.Object) {
	pod.DefaultTemplate(obj)
	strategy := object.Child(object.Child(obj, "spec"), "updateStrategy")
	if object.String(strategy, "type") == "" {
		strategy["type"] = "RollingUpdate"
		object.Child(strategy, "rollingUpdate")
	}
	if rolling, ok := strategy["rollingUpdate"].(map[string]any); ok && strategy["type"] == "RollingUpdate" {
		rule.SetDefault(rolling, "partition", int64(0))
		rule.SetDefault(rolling, "maxUnavailable", int64(1))
	}
	setClaimKinds(obj)
	for _, claim := range object.Objects(object.Map(obj, "spec")["volumeClaimTemplates"]) {
		pod.RoundClaim(claim)
	}
}

func prepareStatefulSetCreate(obj object.Object, _ catalog.Env) {
	rule.ResetStatus[appsv1.StatefulSet](obj)
}

func prepareStatefulSetUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		rule.Keep(obj, old, "spec")
		return
	}
	rule.Keep(obj, old, "status")
	rule.CountChange(obj, old)
}

// statefulSetFunctions are the functions that stateful_set.txt names.
func statefulSetFunctions() rule.Functions {
	return rule.Functions{
		"ordinals":            ordinals,
		"stateful":            stateful,
		"statefulSetCounts":   statefulSetCounts,
		"statefulSetStrategy": statefulSetStrategy,
		"statefulSetUpdate":   statefulSetUpdate,
	}
}
