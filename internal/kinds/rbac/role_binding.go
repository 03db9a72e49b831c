package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func roleBindingKind() rule.Kind {
	return rule.Of[rbacv1.RoleBinding](rule.Kind{
		Group: rbacV1, Kind: "RoleBinding", Plural: "rolebindings",
		Strategy: bindingRules(rule.Printed(roleBindingCells)),
	})
}

// roleBindingFunctions are the functions that role_binding.txt names.
func roleBindingFunctions() rule.Functions {
	return rule.Functions{
		"sameRole": sameRole,
		"subject":  func(val *rule.Validation, p rule.Value) { subject(val, p, true) },
	}
}
