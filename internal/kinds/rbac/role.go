package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func roleKind() rule.Kind {
	return rule.Of[rbacv1.Role](rule.Kind{Group: rbacV1, Kind: "Role", Plural: "roles", Strategy: accessRules()})
}

func checkRule(val *rule.Validation, p rule.Value, namespaced bool) {
	r := p.Object()
	if rule.IsEmpty(r["verbs"]) {
		val.Required(p.Path.Child("verbs"), "")
	}
	if urls := rule.Strings(r["nonResourceURLs"]); len(urls) > 0 {
		path := p.Path.Child("nonResourceURLs")
		if namespaced {
			val.Invalid(path, urls, "namespaced rules cannot apply to non-resource URLs")
		}
		if !rule.IsEmpty(r["apiGroups"]) || !rule.IsEmpty(r["resources"]) || !rule.IsEmpty(r["resourceNames"]) {
			val.Invalid(path, urls, "rules cannot apply to both regular resources and non-resource URLs")
		}
		return
	}
	if rule.IsEmpty(r["apiGroups"]) {
		val.Required(p.Path.Child("apiGroups"), "resource rules must supply at least one api group")
	}
	if rule.IsEmpty(r["resources"]) {
		val.Required(p.Path.Child("resources"), "resource rules must supply at least one resource")
	}
}

// roleFunctions are the functions that role.txt names.
func roleFunctions() rule.Functions {
	return rule.Functions{
		"namespacedRule": func(val *rule.Validation, p rule.Value) { checkRule(val, p, true) },
	}
}
