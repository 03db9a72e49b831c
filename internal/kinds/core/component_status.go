package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func componentStatusKind() rule.Kind {
	return rule.Of[corev1.ComponentStatus](rule.Kind{
		Group: coreV1, Kind: "ComponentStatus", Deprecated: "v1 ComponentStatus is deprecated in v1.19+",
		Plural: "componentstatuses", Short: []string{"cs"},
		ClusterScoped: true, Virtual: true, Verbs: []string{"get", "list"},
		Strategy: &catalog.Strategy{Cells: rule.Printed(componentCells)},
	})
}

func componentCells(c *corev1.ComponentStatus, _ catalog.Env) []any {
	for _, condition := range c.Conditions {
		if condition.Type != corev1.ComponentHealthy {
			continue
		}
		status := "Unhealthy"
		if condition.Status == corev1.ConditionTrue {
			status = "Healthy"
		}
		return []any{c.Name, status, condition.Message, condition.Error}
	}
	return []any{c.Name, "Unknown", "", ""}
}
