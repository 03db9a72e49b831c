package registration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// notSupported lists the allowed values in Kubernetes' alphabetical order.
func notSupported[T ~string](path *field.Path, value T, allowed ...string) *field.Error {
	slices.Sort(allowed)
	return field.NotSupported(path, value, allowed)
}

// checkEnum requires one of the allowed values; nil is valid.
func checkEnum[T ~string](path *field.Path, value *T, allowed ...string) field.ErrorList {
	if value == nil || slices.Contains(allowed, string(*value)) {
		return nil
	}
	return field.ErrorList{notSupported(path, *value, allowed...)}
}

// checkRequiredEnum is checkEnum for a field that must be set.
func checkRequiredEnum[T ~string](path *field.Path, value *T, allowed ...string) field.ErrorList {
	if value == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	return checkEnum(path, value, allowed...)
}

// Values of enumerated fields.
var (
	failurePolicies      = []string{"Fail", "Ignore"}
	matchPolicies        = []string{"Equivalent", "Exact"}
	reinvocationPolicies = []string{"IfNeeded", "Never"}
	scopes               = []string{"*", "Cluster", "Namespaced"}
	operations           = []string{"*", "CONNECT", "CREATE", "DELETE", "UPDATE"}
	mutatingOperations   = []string{"*", "CONNECT", "CREATE", "UPDATE"}
)

// checkRule is about a rule of a webhook, and the unnamed part of a policy's rule.
func checkRule(r *admissionregistrationv1.RuleWithOperations, path *field.Path) (errs field.ErrorList) {
	if len(r.Operations) == 0 {
		errs = append(errs, field.Required(path.Child("operations"), ""))
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionregistrationv1.OperationAll) {
		errs = append(errs,
			field.Invalid(path.Child("operations"), r.Operations,
				"if '*' is present, must not specify other operations"))
	}
	for i, op := range r.Operations {
		errs = append(errs, checkEnum(path.Child("operations").Index(i), &op, operations...)...)
	}
	wild := func(list []string, name, noun string) {
		if len(list) == 0 {
			errs = append(errs, field.Required(path.Child(name), ""))
		}
		if len(list) > 1 && slices.Contains(list, "*") {
			errs = append(errs,
				field.Invalid(path.Child(name), list, "if '*' is present, must not specify other API "+noun))
		}
	}
	wild(r.APIGroups, "apiGroups", "groups")
	wild(r.APIVersions, "apiVersions", "versions")
	for i, version := range r.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(path.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, checkResources(r.Resources, path.Child("resources"))...)
	return append(errs, checkEnum(path.Child("scope"), r.Scope, scopes...)...)
}

// checkResources refuses a resource that a wildcard in the same list covers.
func checkResources(resources []string, path *field.Path) (errs field.ErrorList) {
	if len(resources) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	allOf := map[string]bool{} // x/*
	inAll := map[string]bool{} // */x
	plain := false             // the last resource without a subresource is not *
	for i, text := range resources {
		if text == "" {
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		}
		resource, sub, has := strings.Cut(text, "/")
		if !has {
			plain = text != "*"
			continue
		}
		if allOf[resource] {
			errs = append(errs,
				field.Invalid(path.Index(i), text,
					fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, text)))
		}
		if inAll[sub] {
			errs = append(errs,
				field.Invalid(path.Index(i), text, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, text)))
		}
		allOf[resource] = allOf[resource] || sub == "*"
		inAll[sub] = inAll[sub] || resource == "*"
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, must not specify other resources"))
	}
	if plain && slices.Contains(resources, "*") {
		errs = append(errs,
			field.Invalid(path, resources, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

func checkNamedRule(r *admissionregistrationv1.NamedRuleWithOperations, path *field.Path) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, name := range r.ResourceNames {
		at := path.Child("resourceNames").Index(i)
		for _, problem := range content.IsPathSegmentName(name) {
			errs = append(errs, field.Invalid(at, name, problem))
		}
		if seen[name] {
			errs = append(errs, field.Duplicate(at, name))
		}
		seen[name] = true
	}
	return append(errs, checkRule(&r.RuleWithOperations, path)...)
}

// checkMatchResources is about the matchConstraints of a policy and the matchResources of a binding; nil is fine.
func checkMatchResources(m *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	errs := checkRequiredEnum(path.Child("matchPolicy"), m.MatchPolicy, matchPolicies...)
	strict := metav1validation.LabelSelectorValidationOptions{}
	if m.NamespaceSelector == nil {
		errs = append(errs, field.Required(path.Child("namespaceSelector"), ""))
	} else {
		errs = append(errs,
			metav1validation.ValidateLabelSelector(m.NamespaceSelector, strict, path.Child("namespaceSelector"))...)
	}
	if m.ObjectSelector == nil {
		errs = append(errs, field.Required(path.Child("objectSelector"), ""))
	} else {
		errs = append(errs,
			metav1validation.ValidateLabelSelector(m.ObjectSelector, strict, path.Child("objectSelector"))...)
	}
	for i := range m.ResourceRules {
		errs = append(errs, checkNamedRule(&m.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, checkNamedRule(&m.ExcludeResourceRules[i], path.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

// checkMutatingOperations requires the rules of a mutating policy to select operations that can be mutated.
func checkMutatingOperations(m *admissionregistrationv1.MatchResources, path *field.Path) (errs field.ErrorList) {
	if m == nil {
		return nil
	}
	for _, r := range m.ResourceRules {
		for _, op := range r.Operations {
			errs = append(errs, checkEnum(path, &op, mutatingOperations...)...)
		}
	}
	return errs
}
