package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// accessFunctions are about roles and bindings.
func accessFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"namespacedRule":  func(j *judgement, p place) { j.rule(p, true) },
		"clusterRule":     func(j *judgement, p place) { j.rule(p, false) },
		"sameRole":        sameRole,
		"aggregationRule": aggregationRule,
		"subject":         func(j *judgement, p place) { j.subject(p, true) },
		"clusterSubject":  func(j *judgement, p place) { j.subject(p, false) },
	}
}

const rbac = "rbac.authorization.k8s.io"

func (j *judgement) rule(p place, namespaced bool) {
	r := p.object()
	if empty(r["verbs"]) {
		j.required(p.path.Child("verbs"), "verbs must contain at least one value")
	}
	if urls := texts(r["nonResourceURLs"]); len(urls) > 0 {
		path := p.path.Child("nonResourceURLs")
		if namespaced {
			j.invalid(path, urls, "namespaced rules cannot apply to non-resource URLs")
		}
		if !empty(r["apiGroups"]) || !empty(r["resources"]) || !empty(r["resourceNames"]) {
			j.invalid(path, urls, "rules cannot apply to both regular resources and non-resource URLs")
		}
		return
	}
	if empty(r["apiGroups"]) {
		j.required(p.path.Child("apiGroups"), "resource rules must supply at least one api group")
	}
	if empty(r["resources"]) {
		j.required(p.path.Child("resources"), "resource rules must supply at least one resource")
	}
}

// sameRole: a binding keeps its role. Kubernetes shows the fields of its internal type, which have no JSON names.
func sameRole(j *judgement, p place) {
	if ref := p.object(); !same(p.value, p.old) {
		j.invalid(p.path,
			map[string]string{
				"APIGroup": text1(ref, "apiGroup"), "Kind": text1(ref, "kind"), "Name": text1(ref, "name"),
			}, "cannot change roleRef")
	}
}

func aggregationRule(j *judgement, p place) {
	if p.value == nil {
		return
	}
	path := p.path.Child("clusterRoleSelectors")
	list := objects(p.object()["clusterRoleSelectors"])
	if len(list) == 0 {
		j.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
	}
	for i, s := range list {
		j.selects(s, selectorValues, path.Index(i))
		if broken(labelSelector(s)) {
			j.invalid(path.Index(i), nil, "invalid label selector.")
		}
	}
}

func (j *judgement) subject(p place, namespaced bool) {
	s := p.object()
	name, group := text1(s, "name"), text1(s, "apiGroup")
	if name == "" {
		j.required(p.path.Child("name"), "")
	}
	switch kind := text1(s, "kind"); kind {
	case "ServiceAccount":
		if name != "" {
			j.invalids(p.path.Child("name"), name, validation.IsDNS1123Subdomain(name))
		}
		if group != "" {
			j.unsupported(p.path.Child("apiGroup"), group, "")
		}
		if !namespaced && text1(s, "namespace") == "" {
			j.required(p.path.Child("namespace"), "")
		}
	case "User", "Group":
		if group != rbac {
			j.unsupported(p.path.Child("apiGroup"), group, rbac)
		}
	default:
		j.unsupported(p.path.Child("kind"), kind, slices.Clone([]string{"ServiceAccount", "User", "Group"})...)
	}
}
