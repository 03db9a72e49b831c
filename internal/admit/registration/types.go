package registration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/admit/expr"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// maxKinds is the number of kinds of one rule after which the search ends.
const maxKinds = 10

// SchemaOf returns the schema of a kind without references; nil if the kind does not exist.
type SchemaOf func(kind schema.GroupVersionKind) *spec.Schema

// TypeWarnings checks the expressions of a policy against the schemas of its kinds, and returns the errors for some
// kind; nil if there are none. Rule: "Type checking" of ValidatingAdmissionPolicy in the Kubernetes documentation;
// test/oracle-builtins compares with k8s.io/apiserver/pkg/admission/plugin/policy/validating.
func TypeWarnings(
	p *admissionregistrationv1.ValidatingAdmissionPolicySpec, served *catalog.Snapshot, schemaOf SchemaOf,
) []admissionregistrationv1.ExpressionWarning {
	checks := checksOf(p, served, schemaOf)
	var warnings []admissionregistrationv1.ExpressionWarning
	check := func(path *field.Path, expression string) {
		var found []string
		for _, c := range checks {
			if wrong := c.Check(expression); wrong != "" {
				found = append(found, fmt.Sprintf("%v: %s\n", c.kind, wrong))
			}
		}
		if len(found) > 0 {
			warnings = append(warnings,
				admissionregistrationv1.ExpressionWarning{FieldRef: path.String(), Warning: strings.Join(found, "\n")})
		}
	}
	for i, v := range p.Validations {
		at := field.NewPath("spec", "validations").Index(i)
		check(at.Child("expression"), v.Expression)
		if v.MessageExpression != "" {
			check(at.Child("messageExpression"), v.MessageExpression)
		}
	}
	return warnings
}

// kindCheck checks expressions against one kind.
type kindCheck struct {
	*expr.Checker
	kind schema.GroupVersionKind
}

func checksOf(
	p *admissionregistrationv1.ValidatingAdmissionPolicySpec, served *catalog.Snapshot, schemaOf SchemaOf,
) (checks []kindCheck) {
	shape := func(kind schema.GroupVersionKind, number int) (*expr.ObjectType, bool) {
		s := schemaOf(kind)
		if s == nil {
			return nil, false
		}
		return expr.Shape(fmt.Sprintf("%s%d", kind.Kind, number), s), true
	}
	var shapes expr.Shapes
	if p.ParamKind != nil {
		if gv, err := schema.ParseGroupVersion(p.ParamKind.APIVersion); err == nil {
			shapes.HasParams = true
			shapes.Params, _ = shape(gv.WithKind(p.ParamKind.Kind), 0)
		}
	}
	for _, kind := range matchedKinds(p.MatchConstraints, served) {
		var known bool
		if shapes.Object, known = shape(kind, 1); !known {
			continue
		}
		c, err := expr.NewChecker(shapes)
		if err != nil {
			continue // a schema without CEL types
		}
		for _, v := range p.Variables {
			c.Variable(v.Name, v.Expression)
		}
		checks = append(checks, kindCheck{c, kind})
	}
	return checks
}

// matchedKinds returns the kinds named by the rules of a policy, sorted. Rules with a * in their groups or versions,
// resources with a *, and subresources name no kinds.
func matchedKinds(m *admissionregistrationv1.MatchResources, served *catalog.Snapshot) []schema.GroupVersionKind {
	if m == nil {
		return nil
	}
	found := map[schema.GroupVersionKind]bool{}
	for _, rule := range m.ResourceRules {
		if !matchRuleKinds(&rule.Rule, served, found) {
			break
		}
	}
	kinds := make([]schema.GroupVersionKind, 0, len(found))
	for k := range found {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version),
			strings.Compare(a.Kind, b.Kind))
	})
	return kinds
}

// matchRuleKinds adds the kinds named by a rule to found. It returns false to end the search at the limit.
func matchRuleKinds(
	rule *admissionregistrationv1.Rule, served *catalog.Snapshot, found map[schema.GroupVersionKind]bool,
) bool {
	wild := func(s string) bool { return strings.Contains(s, "*") }
	if slices.ContainsFunc(rule.APIGroups, wild) || slices.ContainsFunc(rule.APIVersions, wild) {
		return true
	}
	count := 0
	for _, group := range slices.Sorted(slices.Values(rule.APIGroups)) {
		for _, version := range slices.Sorted(slices.Values(rule.APIVersions)) {
			for _, resource := range slices.Sorted(slices.Values(rule.Resources)) {
				if strings.ContainsAny(resource, "*/") {
					continue
				}
				for _, kind := range kindsFor(served, group, version, resource) {
					found[kind] = true
					if count++; count == maxKinds {
						return false
					}
				}
			}
		}
	}
	return true
}

// kindsFor returns the kinds that Kubernetes' RESTMapper finds for a resource. For it the group "" means any group:
// pods of v1 are one kind, but events of v1 and deployments of v1 are also found in other groups.
func kindsFor(served *catalog.Snapshot, group, version, resource string) (kinds []schema.GroupVersionKind) {
	resource = strings.ToLower(resource)
	for _, g := range served.Groups() {
		if v := g.Version(version); v != nil && (group == "" || g.Name == group) {
			for _, r := range v.Resources {
				if r.Plural == resource || r.Singular == resource {
					kinds = append(kinds, schema.GroupVersionKind{Group: g.Name, Version: version, Kind: r.Kind})
				}
			}
		}
	}
	return kinds
}
