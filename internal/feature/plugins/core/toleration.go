package core

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
)

// TolerationSeconds adds tolerations of five minutes for nodes that are not ready or unreachable, unless a pod has such
// tolerations.
func TolerationSeconds(c plugin.Config) []plugin.Rule {
	nodes := lostNodes{{corev1.TaintNodeNotReady, 300}, {corev1.TaintNodeUnreachable, 300}}
	for i, seconds := range []*int64{c.NotReadySeconds, c.UnreachableSeconds} {
		if seconds != nil {
			nodes[i].seconds = *seconds
		}
	}
	return []plugin.Rule{{Plural: "pods", Operations: plugin.Writes, Mutate: nodes.tolerate}}
}

// lostNodes are the taints of lost nodes, and how long pods tolerate each.
type lostNodes [2]struct {
	taint   string
	seconds int64
}

func (l lostNodes) tolerate(_ context.Context, a *admit.Attributes) error {
	list, _ := catalog.At(a.Object, "spec")["tolerations"].([]any)
	more := list
	for _, lost := range l {
		if !toleratesEviction(list, lost.taint) {
			more = append(slices.Clip(more), object{
				"key": lost.taint, "operator": string(corev1.TolerationOpExists),
				"effect": string(corev1.TaintEffectNoExecute), "tolerationSeconds": lost.seconds,
			})
		}
	}
	if len(more) > len(list) {
		a.Edit("spec")["tolerations"] = more
	}
	return nil
}

// toleratesEviction reports whether tolerations cover a NoExecute taint.
func toleratesEviction(list []any, key string) bool {
	return slices.ContainsFunc(catalog.Objects(list), func(t object) bool {
		k, effect := catalog.Text(t, "key"), catalog.Text(t, "effect")
		return (k == key || k == "") && (effect == string(corev1.TaintEffectNoExecute) || effect == "")
	})
}
