package network

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func ingressClassKind() rule.Kind {
	return rule.Of[networkingv1.IngressClass](rule.Kind{
		Group: networkingV1, Kind: "IngressClass", Plural: "ingressclasses", ClusterScoped: true, Generation: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(ingressClassCells), VisibleOnReturn: true, UnconditionalUpdate: true,
		},
	})
}

func ingressClassCells(c *networkingv1.IngressClass, e catalog.Env) []any {
	name := c.Name
	if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
		name += " (default)"
	}
	parameters := rule.None
	if p := c.Spec.Parameters; p != nil {
		parameters = p.Kind
		if p.APIGroup != nil {
			parameters += "." + *p.APIGroup
		}
		parameters += "/" + p.Name
	}
	return []any{name, c.Spec.Controller, parameters, rule.Ago(c.CreationTimestamp, e)}
}

func classScope(val *rule.Validation, p rule.Value) {
	scope, ok := p.Object()["scope"].(string)
	namespace, named := p.Object()["namespace"].(string)
	path := p.Path.Child("namespace")
	switch {
	case !ok:
		val.Required(p.Path.Child("scope"), "")
	case scope == "Namespace" && !named:
		val.Required(path, "`parameters.scope` is set to 'Namespace'")
	case scope == "Namespace":
		val.Invalids(path, namespace, validation.IsDNS1123Label(namespace))
	case scope != "Cluster":
		val.Unsupported(p.Path.Child("scope"), scope, "Cluster", "Namespace")
	case named:
		val.Forbidden(path, "`parameters.scope` is set to 'Cluster'")
	}
}

func domainPath(val *rule.Validation, p rule.Value) {
	s, _ := p.New.(string)
	val.Errs = append(val.Errs, validation.IsDomainPrefixedPath(p.Path, s)...)
}

// sameText is "same" for a string that is omitted when empty, and shown as "".
func sameText(val *rule.Validation, p rule.Value) {
	was, _ := p.Old.(string)
	if s, _ := p.New.(string); val.Old != nil && s != was {
		val.Invalid(p.Path, s, "field is immutable")
	}
}

// ingressClassFunctions are the functions that ingress_class.txt names.
func ingressClassFunctions() rule.Functions {
	return rule.Functions{
		"classScope": classScope,
		"controller": func(val *rule.Validation, p rule.Value) { domainPath(val, p) },
		"sameText":   sameText,
	}
}
