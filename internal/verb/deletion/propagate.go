package deletion

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Propagate gives obj the finalizer that its deletion needs, so that the garbage collector first orphans or deletes
// what obj owns, and takes away the one that it does not need. What the request says counts first, then a finalizer
// that the object has, then what is usual for the kind.
func Propagate(strategy *catalog.Strategy, obj object.Object, o metav1.DeleteOptions) {
	meta := object.Meta(obj)
	list, _ := meta["finalizers"].([]any)
	want := wantedFinalizer(strategy, list, o)
	kept := slices.DeleteFunc(slices.Clone(list), func(f any) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if len(list)-len(kept) == 1 && want != "" && slices.Contains(list, any(want)) {
		return // as it is; its place in the list too
	}
	if want != "" {
		kept = append(kept, want)
	}
	object.SetOrDelete(meta, "finalizers", kept, len(kept) > 0)
}

// wantedFinalizer returns the finalizer of the policy that applies, "" for deletion in the background, which has none.
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
