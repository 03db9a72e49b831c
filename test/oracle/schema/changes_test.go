package schema

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"

	"github.com/bowsprit/bowsprit/internal/feature/compat"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// TestCrdify compares the findings of feature/compat for random changes of random schemas with crdify's. crdifyClass
// and explained have the differences. ORACLE_CASES is the number of changes.
func TestCrdify(t *testing.T) {
	t.Parallel()
	cases, seed := fixture.Setting("ORACLE_CASES", 3000), uint64(fixture.Setting("ORACLE_SEED", 1))
	comparators := crdifyComparators(t)
	seen, agreed := map[string]int{}, 0
	for i := range uint64(cases) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, i))}
		was := g.root()
		is := was.DeepCopy()
		for range 1 + g.IntN(3) {
			g.change(is)
		}
		plain(was)
		plain(is)
		ours, theirs := ourChanges(was, is), crdifyChanges(was, is, comparators)
		for _, c := range slices.Sorted(maps.Keys(ours)) {
			agreed++
			if !theirs[c] {
				t.Fatalf("seed %d,%d: only we find %s\n%s\n%s", seed, i, c, dump(was), dump(is))
			}
		}
		for _, c := range slices.Sorted(maps.Keys(theirs)) {
			_, class, _ := strings.Cut(c, " ")
			seen[class]++
			if !ours[c] {
				t.Fatalf("seed %d,%d: only crdify finds %s\n%s\n%s", seed, i, c, dump(was), dump(is))
			}
		}
	}
	for _, class := range []string{"type", "enum", "default", "required", "minimum", "maximum", "minItems", "maxItems",
		"minLength", "maxLength", "minProperties", "maxProperties", "unhandled"} {
		if seen[class] == 0 {
			t.Errorf("no change of the class %s", class)
		}
	}
	t.Logf("%d changes alike: %v", agreed, seen)
}

// crdifyComparators returns crdify's comparators of fields, with all findings as errors.
func crdifyComparators(t *testing.T) []validations.Comparator[apiextensionsv1.JSONSchemaProps] {
	t.Helper()
	all, err := validations.LoadValidationsFromRegistry(runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return validations.ComparatorsForValidations[apiextensionsv1.JSONSchemaProps](slices.Collect(maps.Values(all))...)
}

// change changes a schema at a random place: it adds, removes or replaces a keyword or a field.
func (g *generator) change(s *apiextensionsv1.JSONSchemaProps) {
	below := slices.Sorted(maps.Keys(s.Properties))
	if len(below) > 0 && g.in(80) {
		name := pick(g, below)
		child := s.Properties[name]
		switch {
		case g.in(10):
			delete(s.Properties, name)
			return
		case g.in(10):
			child = *g.schema(2)
		default:
			g.change(&child)
		}
		s.Properties[name] = child
		return
	}
	if s.Items != nil && g.in(60) {
		g.change(s.Items.Schema)
		return
	}
	other := g.schema(1)
	for range 4 {
		switch g.IntN(14) {
		case 0:
			s.Type = other.Type
		case 1:
			s.Enum = []apiextensionsv1.JSON{raw(pick(g, texts)), raw(pick(g, texts))}
		case 2:
			s.Default = other.Default
		case 3:
			s.Minimum, s.Maximum = some(float64(g.IntN(3))), some(float64(g.IntN(9)))
		case 4:
			s.MinLength, s.MaxLength = some(int64(g.IntN(3))), some(int64(g.IntN(9)))
		case 5:
			s.MinItems, s.MaxItems = some(int64(g.IntN(3))), some(int64(g.IntN(9)))
		case 6:
			s.MinProperties, s.MaxProperties = some(int64(g.IntN(3))), some(int64(g.IntN(9)))
		case 7:
			s.Required = []string{pick(g, names)}
		case 8:
			s.Pattern = other.Pattern
		case 9:
			s.Format = other.Format
		case 10:
			s.Nullable = !s.Nullable
		case 11:
			s.XValidations = apiextensionsv1.ValidationRules{{Rule: pick(g, texts)}}
		case 12:
			s.Minimum, s.MaxItems, s.MaxLength, s.Enum, s.Pattern = nil, nil, nil, nil, ""
		case 13:
			s.XListType, s.XMapType = other.XListType, other.XMapType
		}
	}
}

// plain removes the parts of a schema that crdify reads otherwise. It looks at branches (allOf and others) as if they
// were the field itself, and the last one hides the field; it takes an explicit default of a keyword for a change.
func plain(s *apiextensionsv1.JSONSchemaProps) {
	s.AllOf, s.AnyOf, s.OneOf, s.Not = nil, nil, nil, nil
	for _, b := range []**string{&s.XListType, &s.XMapType} {
		if *b != nil && (**b == "atomic" && b == &s.XListType || **b == "granular") {
			*b = nil
		}
	}
	if s.XPreserveUnknownFields != nil && !*s.XPreserveUnknownFields {
		s.XPreserveUnknownFields = nil
	}
	// crdify compares these apart from the type and from the limits.
	if s.XIntOrString {
		s.XIntOrString, s.Type = false, "integer or string"
	}
	s.ExclusiveMinimum, s.ExclusiveMaximum = false, false
	for i := range s.XValidations {
		s.XValidations[i] = apiextensionsv1.ValidationRule{Rule: s.XValidations[i].Rule}
	}
	byRule := func(a, b apiextensionsv1.ValidationRule) int { return strings.Compare(a.Rule, b.Rule) }
	slices.SortFunc(s.XValidations, byRule) // for crdify, another order is a change
	s.XValidations = slices.CompactFunc(s.XValidations, func(a, b apiextensionsv1.ValidationRule) bool {
		return a.Rule == b.Rule
	})
	if s.AdditionalProperties != nil { // its schema counts as a part of the field and as a field of its own
		s.AdditionalProperties = nil
	}
	for name, child := range s.Properties {
		plain(&child)
		s.Properties[name] = child
	}
	if s.Items != nil {
		plain(s.Items.Schema)
	}
}

// ourChanges returns our findings as "path class", with crdify's names.
func ourChanges(was, is *apiextensionsv1.JSONSchemaProps) map[string]bool {
	all := map[string]bool{}
	for _, f := range compat.Compare(definitionOf(was), definitionOf(is)) {
		class := crdifyClass(&f)
		if class == "" {
			continue
		}
		all[strings.TrimSuffix("^."+strings.Replace(f.Path, "[*]", "[*]", 1), ".")+" "+class] = true
	}
	return all
}

func definitionOf(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: s},
	}}
	return d
}

// crdifyClass returns crdify's name of a finding, or "" for one that crdify does not have: a looser limit, a field that
// is no longer required, a removed field (which crdify looks at in another way).
func crdifyClass(f *compat.Finding) string {
	keyword := f.Location[strings.LastIndexByte(f.Location, '.')+1:]
	switch f.Class {
	case compat.Type, compat.Enum, compat.Default, compat.Required, compat.Description, compat.Minimum, compat.Maximum,
		compat.MinItems, compat.MaxItems, compat.MinLength, compat.MaxLength, compat.MinProperties,
		compat.MaxProperties:
		return string(f.Class)
	case compat.EnumAddition:
		return "enum"
	case compat.RequiredWithDefault:
		return "required"
	case compat.ExistingFieldRemoval, compat.AdditionalProperties:
		return ""
	case compat.Loosening:
		switch keyword {
		case "enum":
			return "enum"
		case "required", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "minProperties",
			"maxProperties":
			return ""
		}
	}
	return "unhandled"
}

// crdifyChanges returns crdify's findings for fields that both states have, as "path class".
func crdifyChanges(
	was, is *apiextensionsv1.JSONSchemaProps, comparators []validations.Comparator[apiextensionsv1.JSONSchemaProps],
) map[string]bool {
	a, b := definitionOf(was).Spec.Versions[0], definitionOf(is).Spec.Versions[0]
	kept := validations.FlattenCRDVersion(b)
	all := map[string]bool{}
	for path, results := range validations.CompareVersions(a, b, config.EnforcementPolicyError, comparators...) {
		if kept[path] == nil {
			continue
		}
		for _, r := range results {
			if len(r.Errors) > 0 {
				all[fmt.Sprintf("%s %s", path, r.Name)] = true
			}
		}
	}
	return all
}
