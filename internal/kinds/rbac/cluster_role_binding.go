package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func clusterRoleBindingKind() rule.Kind {
	return rule.Of[rbacv1.ClusterRoleBinding](rule.Kind{
		Group: rbacV1, Kind: "ClusterRoleBinding", Plural: "clusterrolebindings", ClusterScoped: true,
		Strategy: bindingRules(rule.Printed(clusterRoleBindingCells)),
	})
}

// clusterRoleBindingFunctions are the functions that cluster_role_binding.txt names.
func clusterRoleBindingFunctions() rule.Functions {
	return rule.Functions{
		"clusterSubject": func(val *rule.Validation, p rule.Value) { subject(val, p, false) },
	}
}
