package flowcontrol

import (
	"fmt"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func flowSchemaKind() rule.Kind {
	return rule.Of[flowcontrolv1.FlowSchema](rule.Kind{
		Group: flowcontrolV1, Kind: "FlowSchema", Plural: "flowschemas", ClusterScoped: true, Status: true,
		StatusOnly: true, Generation: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(flowSchemaCells), Rank: matchingPrecedence, UnconditionalUpdate: true,
		},
	})
}

func flowSchemaCells(f *flowcontrolv1.FlowSchema, e catalog.Env) []any {
	method := rule.None
	if f.Spec.DistinguisherMethod != nil {
		method = string(f.Spec.DistinguisherMethod.Type)
	}
	dangling := "?"
	for _, c := range f.Status.Conditions {
		if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
			dangling = string(c.Status)
			break
		}
	}
	return []any{f.Name, f.Spec.PriorityLevelConfiguration.Name, int64(f.Spec.MatchingPrecedence), method,
		rule.Ago(f.CreationTimestamp, e), dangling}
}

// matchingPrecedence returns the precedence of a FlowSchema, the order in which requests are matched.
func matchingPrecedence(obj object.Object) int64 {
	n, _ := object.Map(obj, "spec")["matchingPrecedence"].(int64)
	return n
}

func flowSchema(val *rule.Validation, _ rule.Value) {
	spec, path, name := object.Map(val.Obj, "spec"), field.NewPath("spec"),
		object.String(object.Map(val.Obj, "metadata"), "name")
	const highest = 10000
	n, _ := object.Int(spec, "matchingPrecedence")
	switch at := path.Child("matchingPrecedence"); {
	case n <= 0:
		val.Invalid(at, n, "must be a positive value")
	case n > highest:
		val.Invalid(at, n, fmt.Sprintf("must not be greater than %d", highest))
	case n == 1 && name != "exempt":
		val.Invalid(at, n, "only the schema named 'exempt' may have matchingPrecedence 1")
	}
	if method := object.Map(spec, "distinguisherMethod"); method != nil &&
		!slices.Contains([]string{"ByNamespace", "ByUser"}, object.String(method, "type")) {
		val.Unsupported(path.Child("distinguisherMethod", "type"), method, "ByNamespace", "ByUser")
	}
	if want := mandatory(name); want != nil && !rule.Equivalent(spec, want) {
		val.Invalid(path, spec, fmt.Sprintf("spec of '%s' must equal the fixed value", name))
	}
}

// flowSchemaFunctions are the functions that flow_schema.txt names.
func flowSchemaFunctions() rule.Functions {
	return rule.Functions{
		"flowConditions": flowConditions,
		"flowGroups": func(val *rule.Validation, p rule.Value) {
			all(val, p.Path, rule.Strings(p.New), "api groups")
		},
		"flowNamespaces": flowNamespaces,
		"flowResources": func(val *rule.Validation, p rule.Value) {
			all(val, p.Path, rule.Strings(p.New), "resources")
		},
		"flowRule":    flowRule,
		"flowSchema":  flowSchema,
		"flowSubject": flowSubject,
		"flowURLs":    flowURLs,
		"flowVerbs":   flowVerbs,
	}
}
