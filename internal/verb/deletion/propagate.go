package deletion

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Propagate gives obj the finalizer for its propagation policy and removes the opposite one. The garbage collector then
// orphans or deletes the dependents before the object goes. The policy comes from the request, else from an existing
// finalizer, else from the kind's default.
func Propagate(strategy *catalog.Strategy, obj object.Object, o metav1.DeleteOptions) {
	meta := object.Meta(obj)
	list, _ := meta["finalizers"].([]any)
	want := wantedFinalizer(strategy, list, o)
	kept := slices.DeleteFunc(slices.Clone(list), func(f any) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if len(list)-len(kept) == 1 && want != "" && slices.Contains(list, any(want)) {
		return // unchanged, including its position in the list
	}
	if want != "" {
		kept = append(kept, want)
	}
	object.SetOrDelete(meta, "finalizers", kept, len(kept) > 0)
}

// wantedFinalizer returns the finalizer of the policy that applies; "" for background deletion, which has none.
func wantedFinalizer(
	strategy *catalog.Strategy, finalizers []any, o metav1.DeleteOptions,
) string {
	usual := catalog.DeleteDependents
	if strategy != nil {
		usual = strategy.Dependents
	}
	if usual == catalog.NoDependents {
		return ""
	}
	//lint:ignore SA1019 older clients send it
	if orphan := o.OrphanDependents; orphan != nil {
		if *orphan {
			return metav1.FinalizerOrphanDependents
		}
		return ""
	}
	if o.PropagationPolicy != nil {
		switch *o.PropagationPolicy {
		case metav1.DeletePropagationOrphan:
			return metav1.FinalizerOrphanDependents
		case metav1.DeletePropagationForeground:
			return metav1.FinalizerDeleteDependents
		default:
			return ""
		}
	}
	for _, f := range finalizers {
		if f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents {
			return f.(string)
		}
	}
	if usual == catalog.OrphanDependents {
		return metav1.FinalizerOrphanDependents
	}
	return ""
}
