package catalog

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// deprecatedMark begins the line of a description that deprecates its field, as in the comments of Go.
const deprecatedMark = "Deprecated:"

// Bounds of the warnings about deprecated fields.
const (
	maxDeprecated     = 10  // fields of one object
	maxDeprecatedText = 200 // bytes of a reason
)

// Deprecated is a schema reduced to the fields with the description "Deprecated: <reason>". It is read only.
type Deprecated struct {
	deprecated bool
	reason     string
	standard   any // the field's default, nil for none
	fields     map[string]*Deprecated
	elements   *Deprecated // of a list or map
}

// deprecatedFields returns the deprecated fields of a schema, nil if there are none.
func deprecatedFields(p *apiextensionsv1.JSONSchemaProps) *Deprecated {
	d := &Deprecated{}
	d.reason, d.deprecated = deprecation(p.Description)
	if d.deprecated && p.Default != nil {
		_ = kjson.UnmarshalCaseSensitivePreserveInts(p.Default.Raw, &d.standard) // the schema reports errors
	}
	for name := range p.Properties {
		field := p.Properties[name]
		if below := deprecatedFields(&field); below != nil {
			if d.fields == nil {
				d.fields = map[string]*Deprecated{}
			}
			d.fields[name] = below
		}
	}
	switch {
	case p.Items != nil && p.Items.Schema != nil:
		d.elements = deprecatedFields(p.Items.Schema)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		d.elements = deprecatedFields(p.AdditionalProperties.Schema)
	}
	if !d.deprecated && d.fields == nil && d.elements == nil {
		return nil
	}
	return d
}

// deprecation returns the reason in the description of a deprecated field.
func deprecation(description string) (reason string, deprecated bool) {
	at := strings.Index(description, deprecatedMark)
	if at > 0 && description[at-1] != '\n' {
		at = strings.Index(description, "\n"+deprecatedMark)
		if at >= 0 {
			at++
		}
	}
	if at < 0 {
		return "", false
	}
	reason, _, _ = strings.Cut(description[at+len(deprecatedMark):], "\n\n")
	reason = strings.Join(strings.Fields(reason), " ")
	if len(reason) > maxDeprecatedText {
		reason = strings.ToValidUTF8(reason[:maxDeprecatedText], "") + "…"
	}
	return reason, true
}

// Warnings returns a warning for each deprecated field of obj that old does not have with the same value; old is nil
// for a new object. Values equal to the default of the field do not count.
func (d *Deprecated) Warnings(obj, old Object) (texts []string) {
	if d == nil {
		return nil
	}
	now := deprecatedUses{}
	d.find(obj, "", now)
	if len(now) == 0 {
		return nil
	}
	before := deprecatedUses{}
	if old != nil {
		d.find(old, "", before)
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		for value := range now[path].values {
			if was, ok := before[path]; ok && was.values[value] {
				continue
			}
			text := path + " is deprecated"
			if reason := now[path].reason; reason != "" {
				text += ": " + reason
			}
			texts = append(texts, text)
			break
		}
		if len(texts) == maxDeprecated {
			break
		}
	}
	return texts
}

// deprecatedUses are the deprecated fields in an object, by paths with [*] for the elements of lists and maps.
type deprecatedUses map[string]deprecatedUse

type deprecatedUse struct {
	reason string
	values map[string]bool // JSON
}

// find adds the deprecated fields in v, which is at path.
func (d *Deprecated) find(v any, path string, into deprecatedUses) {
	if v == nil {
		return
	}
	if d.deprecated && path != "" && (d.standard == nil || !codec.Equal(v, d.standard)) {
		use, ok := into[path]
		if !ok {
			use = deprecatedUse{d.reason, map[string]bool{}}
			into[path] = use
		}
		use.values[string(codec.AppendJSON(nil, v))] = true
		return // the fields below are a part of it
	}
	switch v := v.(type) {
	case Object:
		for name, below := range d.fields {
			if path != "" || name != "metadata" {
				below.find(v[name], strings.TrimPrefix(path+"."+name, "."), into)
			}
		}
		if d.elements != nil {
			for name, element := range v {
				if d.fields[name] == nil {
					d.elements.find(element, path+"[*]", into)
				}
			}
		}
	case []any:
		if d.elements != nil {
			for _, element := range v {
				d.elements.find(element, path+"[*]", into)
			}
		}
	}
}
