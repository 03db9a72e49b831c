package flowcontrol

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func priorityLevelConfigurationKind() rule.Kind {
	return rule.Of[flowcontrolv1.PriorityLevelConfiguration](rule.Kind{
		Group: flowcontrolV1, Kind: "PriorityLevelConfiguration", Plural: "prioritylevelconfigurations",
		ClusterScoped: true, Status: true, StatusOnly: true, Generation: true,
		Strategy: &catalog.Strategy{Cells: rule.Printed(priorityLevelCells), UnconditionalUpdate: true},
	})
}

func priorityLevelCells(p *flowcontrolv1.PriorityLevelConfiguration, e catalog.Env) []any {
	shares, queues, hand, length := any(rule.None), any(rule.None), any(rule.None), any(rule.None)
	if l := p.Spec.Limited; l != nil {
		shares = int64(rule.Deref(l.NominalConcurrencyShares, 0))
		if q := l.LimitResponse.Queuing; q != nil {
			queues, hand, length = int64(q.Queues), int64(q.HandSize), int64(q.QueueLengthLimit)
		}
	}
	return []any{p.Name, string(p.Spec.Type), shares, queues, hand, length, rule.Ago(p.CreationTimestamp, e)}
}

// priorityLevelConfigurationFunctions are the functions that priority_level_configuration.txt names.
func priorityLevelConfigurationFunctions() rule.Functions {
	return rule.Functions{
		"exemptLevel":   exemptLevel,
		"limitedLevel":  limitedLevel,
		"priorityLevel": priorityLevel,
	}
}
