package crd

import (
	"fmt"
	"slices"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// warnings returns warnings about a valid definition: unknown formats, and sensitive fields that another version may
// show.
func warnings(obj, _ map[string]any, _ string) (out []string) {
	return append(formatWarnings(obj), sensitiveWarnings(obj)...)
}

func formatWarnings(obj map[string]any) (out []string) {
	if !mayHaveUnknownFormat(obj["spec"]) {
		return nil
	}
	def, err := Decode(obj)
	if err != nil {
		return nil
	}
	var formats []string
	for i := range def.Spec.Versions {
		formats = append(formats, schema.UnknownFormats(schemaOf(&def.Spec.Versions[i]))...)
	}
	slices.Sort(formats)
	for _, f := range slices.Compact(formats) {
		out = append(out, fmt.Sprintf("unrecognized format %q", f))
	}
	return out
}

// mayHaveUnknownFormat is a cheap filter before decoding. A match may be in a default or an example.
func mayHaveUnknownFormat(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if format, ok := v["format"].(string); ok && format != "" {
			if typ, _ := v["type"].(string); !schema.KnowsFormat(typ, format) {
				return true
			}
		}
		for _, child := range v {
			if mayHaveUnknownFormat(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, mayHaveUnknownFormat)
	}
	return false
}
