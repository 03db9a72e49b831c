package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func roleBindingCells(b *rbacv1.RoleBinding, e catalog.Env) []any {
	return append([]any{b.Name, b.RoleRef.Kind + "/" + b.RoleRef.Name, rule.Ago(b.CreationTimestamp, e)},
		subjectCells(b.Subjects)...)
}

func clusterRoleBindingCells(b *rbacv1.ClusterRoleBinding, e catalog.Env) []any {
	return append([]any{b.Name, b.RoleRef.Kind + "/" + b.RoleRef.Name, rule.Ago(b.CreationTimestamp, e)},
		subjectCells(b.Subjects)...)
}

// subjectCells are the users, groups and service accounts.
func subjectCells(subjects []rbacv1.Subject) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", ")}
}

// defaultSubjects sets the API group of users and groups in a binding.
func defaultSubjects(obj object.Object) {
	for _, s := range object.Objects(obj["subjects"]) {
		if k := object.String(s, "kind"); k == "User" || k == "Group" {
			rule.SetDefault(s, "apiGroup", "rbac.authorization.k8s.io")
		}
	}
}

const rbac = "rbac.authorization.k8s.io"

// sameRole checks that a binding keeps its role. Kubernetes shows the fields of its internal type, without JSON names.
func sameRole(val *rule.Validation, p rule.Value) {
	if ref := p.Object(); !rule.Equivalent(p.New, p.Old) {
		val.Invalid(p.Path,
			map[string]string{
				"APIGroup": object.String(ref, "apiGroup"), "Kind": object.String(ref, "kind"),
				"Name": object.String(ref, "name"),
			}, "field is immutable")
	}
}

func aggregationRule(val *rule.Validation, p rule.Value) {
	if p.New == nil {
		return
	}
	path := p.Path.Child("clusterRoleSelectors")
	list := rule.Objects(p.Object()["clusterRoleSelectors"])
	if len(list) == 0 {
		val.Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
	}
	for i, s := range list {
		val.Selects(s, rule.SelectorValues, path.Index(i))
		if broken(rule.LabelSelector(s)) {
			val.Invalid(path.Index(i), nil, "invalid label selector.")
		}
	}
}

func subject(val *rule.Validation, p rule.Value, namespaced bool) {
	s := p.Object()
	name, group := object.String(s, "name"), object.String(s, "apiGroup")
	if name == "" {
		val.Required(p.Path.Child("name"), "")
	}
	switch kind := object.String(s, "kind"); kind {
	case "ServiceAccount":
		if name != "" {
			val.Invalids(p.Path.Child("name"), name, validation.IsDNS1123Subdomain(name))
		}
		if group != "" {
			val.Unsupported(p.Path.Child("apiGroup"), group, "")
		}
		if !namespaced && object.String(s, "namespace") == "" {
			val.Required(p.Path.Child("namespace"), "")
		}
	case "User", "Group":
		if group != rbac {
			val.Unsupported(p.Path.Child("apiGroup"), group, rbac)
		}
	default:
		val.Unsupported(p.Path.Child("kind"), kind, slices.Clone([]string{"ServiceAccount", "User", "Group"})...)
	}
}
