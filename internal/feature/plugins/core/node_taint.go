package core

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
)

// NodeTaint keeps pods off a new node until a controller finds it ready.
func NodeTaint(plugin.Config) []plugin.Rule {
	return []plugin.Rule{{Plural: "nodes", Operations: plugin.Creates, Mutate: taintNotReady}}
}

func taintNotReady(_ context.Context, a *admit.Attributes) error {
	taints, _ := catalog.At(a.Object, "spec")["taints"].([]any)
	tainted := slices.ContainsFunc(catalog.Objects(taints), func(t object) bool {
		return catalog.Text(t, "key") == corev1.TaintNodeNotReady &&
			catalog.Text(t, "effect") == string(corev1.TaintEffectNoSchedule)
	})
	if !tainted {
		a.Edit("spec")["taints"] = append(slices.Clip(taints),
			object{"key": corev1.TaintNodeNotReady, "effect": string(corev1.TaintEffectNoSchedule)})
	}
	return nil
}
