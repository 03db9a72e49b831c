package core

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func quotaResources(val *rule.Validation, p rule.Value) {
	for _, name := range object.Keys(p.Object()) {
		at := p.Path.Key(name)
		pod.CheckResourceName(val, name, at)
		if len(strings.Split(name, "/")) == 1 && !pod.InQuota(name) {
			val.Invalid(at, name, "must be a standard resource for quota")
		}
		pod.CheckQuantity(val, name, p.Object()[name], at)
	}
}

var quotaScopeNames = []string{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass",
	"VolumeAttributesClass", "CrossNamespacePodAffinity"}

// scoped reports whether a scope limits a resource.
func scoped(scope, name string) bool {
	switch scope {
	case "Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity":
		return slices.Contains([]string{"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu",
			"requests.memory"}, name)
	case "BestEffort":
		return name == "pods"
	case "VolumeAttributesClass":
		return name == "persistentvolumeclaims" || name == "requests.storage"
	}
	return true
}

func quotaScopes(val *rule.Validation, p rule.Value) {
	scopes, path := rule.Strings(p.Object()["scopes"]), p.Path.Child("scopes")
	for _, s := range scopes {
		if !slices.Contains(quotaScopeNames, s) {
			val.Invalid(path, scopes, "unsupported scope")
		}
		for _, name := range object.Keys(object.Map(p.Object(), "hard")) {
			if pod.InQuota(name) && !scoped(s, name) {
				val.Invalid(path, scopes, "unsupported scope applied to resource")
			}
		}
	}
	conflicting(val, scopes, scopes, path)
}

func conflicting(val *rule.Validation, scopes, shown []string, path *field.Path) {
	for _, pair := range [][2]string{{"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"}} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			val.Invalid(path, shown, "conflicting scopes")
		}
	}
}

func scopeSelector(val *rule.Validation, p rule.Value) {
	selector := object.Map(p.Object(), "scopeSelector")
	if selector == nil {
		return
	}
	path := p.Path.Child("scopeSelector", "matchExpressions")
	var scopes []string
	for _, e := range rule.Objects(selector["matchExpressions"]) {
		scope, op, values := object.String(e, "scopeName"), object.String(e, "operator"), rule.Strings(e["values"])
		if !slices.Contains(quotaScopeNames, scope) {
			val.Invalid(path.Child("scopeName"), scope, "unsupported scope")
		}
		for _, name := range object.Keys(object.Map(p.Object(), "hard")) {
			if pod.InQuota(name) && !scoped(scope, name) {
				val.Invalid(path, shownSelector(selector), "unsupported scope applied to resource")
			}
		}
		if op != "Exists" && slices.Contains(quotaScopeNames, scope) && scope != "PriorityClass" &&
			scope != "VolumeAttributesClass" {
			val.Invalid(path.Child("operator"), op,
				"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity")
		}
		switch op {
		case "In", "NotIn":
			if len(values) == 0 {
				val.Required(path.Child("values"),
					"must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
			}
		case "Exists", "DoesNotExist":
			if len(values) > 0 {
				val.Invalid(path.Child("values"), values,
					"must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
			}
		default:
			val.Invalid(path.Child("operator"), op, "not a valid selector operator")
		}
		scopes = append(scopes, scope)
	}
	var shown []string // nil is shown as null
	if p.Object()["scopes"] != nil {
		shown = rule.Strings(p.Object()["scopes"])
	}
	conflicting(val, scopes, shown, path)
}

// shownSelector returns a selector as kube-apiserver shows it: by the names that its fields have in Go.
func shownSelector(selector object.Object) any {
	type requirement struct {
		ScopeName, Operator string
		Values              []string
	}
	var out struct{ MatchExpressions []requirement }
	for _, e := range rule.Objects(selector["matchExpressions"]) {
		r := requirement{ScopeName: object.String(e, "scopeName"), Operator: object.String(e, "operator")}
		if e["values"] != nil {
			r.Values = rule.Strings(e["values"])
		}
		out.MatchExpressions = append(out.MatchExpressions, r)
	}
	return out
}

func sameScopes(val *rule.Validation, p rule.Value) {
	set := func(v any) []string { return slices.Compact(slices.Sorted(slices.Values(rule.Strings(v)))) }
	if !slices.Equal(set(p.New), set(p.Old)) {
		val.Invalid(p.Path, rule.Strings(p.New), "field is immutable")
	}
}
