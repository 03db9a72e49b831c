package crd

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/api/crd/own"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// warnings returns warnings about a valid definition: unknown formats, sets of objects or lists, and sensitive fields
// that another version may show.
func warnings(obj, old map[string]any, _ string) (out []string) {
	known := setWarnings(old)
	out = formatWarnings(obj)
	for _, w := range setWarnings(obj) {
		if !slices.Contains(known, w) {
			out = append(out, w)
		}
	}
	return append(append(out, sensitiveWarnings(obj)...), own.ColumnWarnings(obj, old)...)
}

func formatWarnings(obj map[string]any) (out []string) {
	var formats []string
	for _, s := range schemasWith(obj, hasUnknownFormat) {
		formats = append(formats, schema.UnknownFormats(s)...)
	}
	slices.Sort(formats)
	for _, f := range slices.Compact(formats) {
		out = append(out, fmt.Sprintf("unrecognized format %q", f))
	}
	return out
}

// setWarnings returns the warnings about sets of objects or lists, sorted. A set compares only scalars.
func setWarnings(obj map[string]any) (out []string) {
	for _, s := range schemasWith(obj, isSet) {
		schema.HasSchema(s, func(p *apiextensionsv1.JSONSchemaProps) bool {
			if p.XListType == nil || *p.XListType != "set" || p.Items == nil || p.Items.Schema == nil {
				return false
			}
			if t := p.Items.Schema.Type; t == "object" || t == "array" {
				out = append(out, fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by "+
					"server-side apply or CEL validation rules", t))
			}
			return false
		})
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// schemasWith returns the schemas of the versions of a definition if may matches an object in its spec: a cheap filter
// before decoding. A match may be in a default or an example.
func schemasWith(obj map[string]any, may func(map[string]any) bool) (out []*apiextensionsv1.JSONSchemaProps) {
	if !contains(obj["spec"], may) {
		return nil
	}
	def, err := Decode(obj)
	if err != nil {
		return nil
	}
	for i := range def.Spec.Versions {
		out = append(out, schemaOf(&def.Spec.Versions[i]))
	}
	return out
}

func contains(v any, match func(map[string]any) bool) bool {
	in := func(v any) bool { return contains(v, match) }
	switch v := v.(type) {
	case map[string]any:
		if match(v) {
			return true
		}
		for _, child := range v {
			if in(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, in)
	}
	return false
}

func hasUnknownFormat(v map[string]any) bool {
	format, _ := v["format"].(string)
	typ, _ := v["type"].(string)
	return format != "" && !schema.KnowsFormat(typ, format)
}

func isSet(v map[string]any) bool { return v["x-kubernetes-list-type"] == "set" }
