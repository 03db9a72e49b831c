package plugin

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/catalog"
)

// tolerationSeconds lets pods stay for five minutes on a node that is not ready or cannot be reached, unless they say how long
// they would.
func tolerationSeconds(Config) []rule {
	return []rule{{plural: "pods", operations: writes, mutate: tolerateLostNodes}}
}

// lostNodeSeconds is kube's --default-not-ready-toleration-seconds and --default-unreachable-toleration-seconds.
const lostNodeSeconds = 300

func tolerateLostNodes(_ context.Context, a *admit.Attributes) error {
	list, _ := catalog.At(a.Object, "spec")["tolerations"].([]any)
	more := list
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !toleratesEviction(list, key) {
			more = append(slices.Clip(more), object{
				"key": key, "operator": string(corev1.TolerationOpExists), "effect": string(corev1.TaintEffectNoExecute), "tolerationSeconds": int64(lostNodeSeconds),
			})
		}
	}
	if len(more) > len(list) {
		a.Edit("spec")["tolerations"] = more
	}
	return nil
}

// toleratesEviction tells whether tolerations say something about a taint that evicts.
func toleratesEviction(list []any, key string) bool {
	return slices.ContainsFunc(catalog.Objects(list), func(t object) bool {
		k, effect := catalog.Text(t, "key"), catalog.Text(t, "effect")
		return (k == key || k == "") && (effect == string(corev1.TaintEffectNoExecute) || effect == "")
	})
}
