package schema

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// KnowsFormat reports whether values of a type are checked against a format; "" is any type. Other formats are ignored.
func KnowsFormat(typ, format string) bool {
	switch typ {
	case "", "string":
		return formatCheck(format) != nil
	case "integer":
		return format == "int32" || format == "int64"
	case "number":
		return format == "float" || format == "double"
	}
	return false
}

// UnknownFormats returns the formats in a schema that are ignored, each once, sorted.
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
