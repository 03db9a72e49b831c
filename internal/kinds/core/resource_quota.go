package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

func resourceQuotaKind() rule.Kind {
	return rule.Of[corev1.ResourceQuota](rule.Kind{
		Group: coreV1, Kind: "ResourceQuota", Plural: "resourcequotas", Short: []string{"quota"}, Status: true,
		ReturnsDeleted: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(quotaCells), Default: defaultResourceQuota, UnconditionalUpdate: true,
		},
		Warn: warnResourceQuota,
	})
}

func defaultResourceQuota(obj object.Object) {
	for name, lists := range map[string][]string{"spec": {"hard"}, "status": {"hard", "used"}} {
		if part, ok := obj[name].(map[string]any); ok {
			pod.RoundUp(part, lists...)
		}
	}
}

func sortedKeys[M ~map[K]V, K ~string, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }

func quotaCells(q *corev1.ResourceQuota, e catalog.Env) []any {
	var requests, limits []string
	for _, name := range sortedKeys(q.Status.Hard) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		text := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, text)
		} else {
			requests = append(requests, text)
		}
	}
	return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), rule.Ago(q.CreationTimestamp, e)}
}

func warnResourceQuota(w *rule.Warnings) {
	if w.Old != nil {
		return
	}
	hard := object.Map(w.Obj, "spec", "hard")
	for _, name := range []string{"cpu", "memory", "storage", "ephemeral-storage"} {
		request, limit := "requests."+name, "limits."+name
		if hard[request] == nil && (name == "cpu" || name == "memory") {
			request = name
		}
		if hard[request] == nil || hard[limit] == nil {
			continue
		}
		least, most := rule.Quantity(hard[request]), rule.Quantity(hard[limit])
		if quantity.Cmp(least, most) > 0 {
			w.AddText(fmt.Sprintf("ResourceQuota %s (%s) should be less than %s (%s)", request, &least, limit, &most))
		}
	}
}

// resourceQuotaFunctions are the functions that resource_quota.txt names.
func resourceQuotaFunctions() rule.Functions {
	return rule.Functions{
		"quotaResources": quotaResources,
		"quotaScopes":    quotaScopes,
		"sameScopes":     sameScopes,
		"scopeSelector":  scopeSelector,
	}
}
