package reshape

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// rulesPath is the path of the rules in a definition.
var rulesPath = field.NewPath("metadata", "annotations").Key(Annotation)

// generatedObjects is the number of objects with which a definition's rules are proven, for all steps together. Each
// step gets five at least.
const generatedObjects = 200

// Manner is the conversion of a definition besides its rules.
type Manner struct {
	Declarative, None bool // the strategy
	Preserves         bool // spec.preserveUnknownFields
}

// Check returns the errors in the rules of a definition, decoded JSON. compile compiles their text.
func Check(
	ctx context.Context, obj object.Object, of Manner, compile func(text string) (*Plan, *Config, error),
) field.ErrorList {
	text := RulesOf(obj)
	switch {
	case text == "" && of.Declarative:
		return field.ErrorList{field.Required(rulesPath,
			"strategy Declarative needs the rules in spec.conversion.steps or in the annotation")}
	case text == "":
		return nil
	case of.None:
		return field.ErrorList{field.Forbidden(rulesPath,
			"must not be set with spec.conversion.strategy None, with which other clusters drop the fields that rules "+
				"move: use strategy Declarative, or Webhook for clusters that do not know the rules")}
	case of.Preserves:
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "preserveUnknownFields"),
			"must be false with rules for conversion")}
	}
	plan, c, err := compile(text)
	if err == nil {
		err = plan.Examples(c)
	}
	if err == nil {
		_, err = plan.Prove(ctx, max(5, generatedObjects/len(c.Steps)/2))
	}
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		problems = Problems{err.Error()}
	}
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(rulesPath, field.OmitValueType{}, problem))
	}
	return errs
}

// Affects reports whether a write creates a definition with rules, or changes its rules or schemas. old is nil for a
// new definition.
func Affects(obj, old object.Object) bool {
	return RulesOf(obj) != "" && (old == nil || conversionOf(obj) != conversionOf(old))
}

// Proof returns the check of the stored objects of a definition, decoded JSON, which has the plan: the objects must be
// valid in all versions, and return as they were.
func (p *Plan) Proof(obj object.Object, contents catalog.GroupResource) *catalog.Proof {
	return &catalog.Proof{
		Key:      conversionOf(obj),
		Contents: contents,
		Path:     rulesPath,
		Check: func(_ string, obj object.Object) error {
			_, version, _ := strings.Cut(object.String(obj, "apiVersion"), "/")
			return p.Keep(obj, version)
		},
		Report: func(_, objects int) string {
			return fmt.Sprintf("the rules in the annotation %s were proven on generated objects and on all stored objects "+
				"(%d): they are valid in all versions, and return as they were", Annotation, objects)
		},
	}
}

// conversionOf returns the rules and schemas of a definition, as text for comparisons.
func conversionOf(obj object.Object) string {
	parts := []any{RulesOf(obj)}
	for _, version := range object.Objects(object.Map(obj, "spec")["versions"]) {
		parts = append(parts, version["name"], version["schema"])
	}
	return string(codec.AppendJSON(nil, parts))
}
