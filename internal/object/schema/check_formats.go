package schema

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// KnowsFormat reports whether values of a type are checked against a format; "" is any type. Other formats are ignored.
func KnowsFormat(typ, name string) bool {
	switch typ {
	case "", "string":
		return format.Check(name) != nil
	case "integer":
		return name == "int32" || name == "int64"
	case "number":
		return name == "float" || name == "double"
	}
	return false
}

// UnknownFormats returns the ignored formats in a schema, sorted and without duplicates.
func UnknownFormats(props *apiextensionsv1.JSONSchemaProps) (formats []string) {
	HasSchema(props, func(p *apiextensionsv1.JSONSchemaProps) bool {
		if p.Format != "" && !KnowsFormat(p.Type, p.Format) {
			formats = append(formats, p.Format)
		}
		return false
	})
	slices.Sort(formats)
	return slices.Compact(formats)
}
