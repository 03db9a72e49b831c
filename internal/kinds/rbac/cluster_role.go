package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func clusterRoleKind() rule.Kind {
	return rule.Of[rbacv1.ClusterRole](rule.Kind{
		Group: rbacV1, Kind: "ClusterRole", Plural: "clusterroles", ClusterScoped: true, Strategy: accessRules(),
	})
}

// broken reports whether a selector is invalid.
func broken(s *metav1.LabelSelector) bool {
	_, err := metav1.LabelSelectorAsSelector(s)
	return err != nil
}

// clusterRoleFunctions are the functions that cluster_role.txt names.
func clusterRoleFunctions() rule.Functions {
	return rule.Functions{
		"aggregationRule": aggregationRule,
		"clusterRule":     func(val *rule.Validation, p rule.Value) { checkRule(val, p, false) },
	}
}
