package crd

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/crd/own"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
)

// Remark is a remark about a field of a definition.
type Remark = own.Remark

// Ordinary changes a decoded and valid definition, decoded JSON, so that other clusters accept it and behave alike.
// webhook converts by the rules of the definition (spec.conversion.webhook). It returns the losses.
func Ordinary(obj, webhook map[string]any) []Remark {
	if reshape.RulesOf(obj) != "" && dig(obj, "spec", "conversion", "strategy") == Declarative {
		obj["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook", "webhook": webhook}
	}
	return own.Ordinary(obj)
}

// OwnFields returns the fields of a definition, before it is decoded, that other clusters do not know.
func OwnFields(obj map[string]any) (found []Remark) {
	path := field.NewPath("spec", "conversion")
	if dig(obj, "spec", "conversion", "strategy") == Declarative {
		found = append(found, Remark{Path: path.Child("strategy").String(),
			Text: "other clusters do not know this value: " + own.Export + "the strategy Webhook"})
	}
	for _, name := range []string{"examples", "steps"} {
		if dig(obj, "spec", "conversion", name) != nil {
			found = append(found, own.Unknown(path.Child(name), own.Export+"the annotation "+reshape.Annotation))
		}
	}
	return append(found, own.Fields(obj)...)
}
