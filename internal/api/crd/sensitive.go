package crd

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// MarkSensitive sets the sensitive fields of the versions of a definition's resource. raw is the encoded definition;
// source returns it later. For a definition without the keyword it costs a search of its bytes.
//
// A field is sensitive in all versions if it is in one: without a conversion webhook all versions have the same fields,
// and an older version without the keyword must not be a way around it.
func MarkSensitive(r *catalog.Resource, raw []byte, source func() ([]byte, error)) {
	if !bytes.Contains(raw, keyword) {
		return
	}
	r.Sensitive = true
	fields := sync.OnceValues(func() (*sensitive.Fields, error) {
		raw, err := source()
		if err != nil {
			return nil, err
		}
		obj, err := decodeDefinition(raw)
		if err != nil {
			return nil, err
		}
		return sensitiveFields(obj), nil
	})
	for _, v := range r.Versions {
		v.Sensitive = fields
	}
}

var keyword = []byte(`"` + sensitive.Keyword + `"`)

// sensitiveFields returns the fields of a definition, decoded JSON, that are sensitive in any of its versions.
func sensitiveFields(obj map[string]any) (all *sensitive.Fields) {
	eachSchema(obj, func(_ string, _ *field.Path, _, schema map[string]any) {
		all = all.Union(sensitive.Of(schema))
	})
	return all
}

// MentionsSensitive reports whether a definition, decoded JSON, makes fields sensitive.
func MentionsSensitive(obj map[string]any) bool { return sensitiveFields(obj) != nil }

// eachSchema calls f with the versions of a definition that have a schema.
func eachSchema(obj map[string]any, f func(name string, at *field.Path, version, schema map[string]any)) {
	versions, _ := dig(obj, "spec", "versions").([]any)
	for i, v := range versions {
		version, _ := v.(map[string]any)
		schema, _ := dig(version, "schema", "openAPIV3Schema").(map[string]any)
		if schema == nil {
			continue
		}
		name, _ := version["name"].(string)
		f(name, field.NewPath("spec", "versions").Index(i), version, schema)
	}
}

// KeepSensitive restores marks of old that are missing in obj, in place, and returns their paths. Clients that use the
// Go type JSONSchemaProps lose the keyword when they write back a definition. To remove a mark, a client sets it to
// false.
func KeepSensitive(obj, old map[string]any) (restored []string) {
	was := map[string]map[string]any{}
	eachSchema(old, func(name string, _ *field.Path, _, schema map[string]any) { was[name] = schema })
	eachSchema(obj, func(name string, at *field.Path, _, schema map[string]any) {
		if before := was[name]; before != nil && sensitive.Of(before) != nil {
			keepMarks(schema, before, at.Child("schema", "openAPIV3Schema"), &restored)
		}
	})
	slices.Sort(restored)
	return restored
}

func keepMarks(schema, old map[string]any, at *field.Path, restored *[]string) {
	if _, set := schema[sensitive.Keyword]; old[sensitive.Keyword] == true && !set {
		schema[sensitive.Keyword] = true
		*restored = append(*restored, at.String())
	}
	below := func(now, was any, at *field.Path) {
		if now, ok := now.(map[string]any); ok {
			if was, ok := was.(map[string]any); ok {
				keepMarks(now, was, at, restored)
			}
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	before, _ := old["properties"].(map[string]any)
	for name, child := range properties {
		below(child, before[name], at.Child("properties").Key(name))
	}
	below(schema["items"], old["items"], at.Child("items"))
	below(schema["additionalProperties"], old["additionalProperties"], at.Child("additionalProperties"))
}

// checkSensitive returns the errors in the marks of a definition, decoded JSON.
func checkSensitive(obj map[string]any) (errs field.ErrorList) {
	all := sensitiveFields(obj)
	preserve := dig(obj, "spec", "preserveUnknownFields") == true
	eachSchema(obj, func(_ string, at *field.Path, version, schema map[string]any) {
		k := sensitiveCheck{}
		k.schema(schema, at.Child("schema", "openAPIV3Schema"), spot{root: true, fields: all})
		errs = append(errs, k.errs...)
		if all == nil {
			return
		}
		if preserve && sensitive.Of(schema) != nil {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "preserveUnknownFields"),
				"must be false if a schema uses "+sensitive.Keyword))
		}
		errs = append(errs, checkSensitivePaths(version, all, at)...)
	})
	return errs
}

// checkSensitivePaths refuses paths that would show a sensitive value in lists, selectors or scales.
func checkSensitivePaths(version map[string]any, all *sensitive.Fields, at *field.Path) (errs field.ErrorList) {
	check := func(v any, at *field.Path) {
		path, _ := v.(string)
		if path == "" {
			return
		}
		switch all.Find(path) {
		case sensitive.Within:
			errs = append(errs, field.Invalid(at, path, "must not point to a sensitive field"))
		case sensitive.Above:
			errs = append(errs, field.Invalid(at, path, "must not point to a value with a sensitive field in it"))
		}
	}
	for _, list := range []string{"additionalPrinterColumns", "selectableFields"} {
		items, _ := version[list].([]any)
		for i, v := range items {
			item, _ := v.(map[string]any)
			check(item["jsonPath"], at.Child(list).Index(i).Child("jsonPath"))
		}
	}
	for _, name := range []string{"specReplicasPath", "statusReplicasPath", "labelSelectorPath"} {
		check(dig(version, "subresources", "scale", name), at.Child("subresources", "scale", name))
	}
	return errs
}

// spot is the position of a check in a schema.
type spot struct {
	root    bool
	junctor bool   // below allOf, anyOf, oneOf or not
	forbids string // reason against the keyword here or below, "" if it is allowed
	marked  bool   // inside a sensitive field
	fields  *sensitive.Fields
	exactly bool // forbids applies only to this place, not below
}

type sensitiveCheck struct{ errs field.ErrorList }

func (k *sensitiveCheck) schema(s map[string]any, at *field.Path, p spot) {
	k.keyword(s, at, p)
	p.marked = p.marked || s[sensitive.Keyword] == true
	k.messages(s, at, p)
	k.list(s, at, p)
	if p.exactly {
		p.forbids, p.exactly = "", false
	}
	embedded := p.root || s["x-kubernetes-embedded-resource"] == true
	p.root = false
	properties, _ := s["properties"].(map[string]any)
	for name, v := range properties {
		below := p
		if embedded && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			below.forbids = "must not be used for apiVersion, kind and metadata"
		}
		below.fields = p.fields.Property(name)
		k.any(v, at.Child("properties").Key(name), below)
	}
	additional := p
	additional.fields = p.fields.Additional()
	k.any(s["additionalProperties"], at.Child("additionalProperties"), additional)
	k.items(s, at, p)
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[name].([]any)
		for i, v := range list {
			below := p
			below.junctor = true
			k.any(v, at.Child(name).Index(i), below)
		}
	}
	p.junctor = true
	k.any(s["not"], at.Child("not"), p)
}

func (k *sensitiveCheck) any(v any, at *field.Path, p spot) {
	if s, ok := v.(map[string]any); ok {
		k.schema(s, at, p)
	}
}

// keyword checks the value and the place of the keyword.
func (k *sensitiveCheck) keyword(s map[string]any, at *field.Path, p spot) {
	v, set := s[sensitive.Keyword]
	if !set {
		return
	}
	at = at.Child(sensitive.Keyword)
	forbid := func(why string) { k.errs = append(k.errs, field.Forbidden(at, why)) }
	switch marks, ok := v.(bool); {
	case !ok:
		k.errs = append(k.errs, field.Invalid(at, v, "must be true or false"))
	case !marks:
	case p.root: // Deckhouse's text
		forbid(sensitive.Keyword + " must not be used at the root of the schema")
	case p.junctor:
		forbid("must be undefined to be structural")
	case p.forbids != "":
		forbid(p.forbids)
	}
}

// messages refuses rule messages computed from values where a sensitive value may be: in, above or below the rule.
func (k *sensitiveCheck) messages(s map[string]any, at *field.Path, p spot) {
	if p.fields == nil && !p.marked {
		return
	}
	rules, _ := s["x-kubernetes-validations"].([]any)
	for i, v := range rules {
		rule, _ := v.(map[string]any)
		if text, _ := rule["messageExpression"].(string); text != "" {
			k.errs = append(k.errs, field.Forbidden(
				at.Child("x-kubernetes-validations").Index(i).Child("messageExpression"),
				"must not be used where self is, has or is part of a sensitive field: use message"))
		}
	}
}

// list refuses lists with separately owned items in a sensitive field: managedFields would contain their keys or
// values.
func (k *sensitiveCheck) list(s map[string]any, at *field.Path, p spot) {
	kind, _ := s["x-kubernetes-list-type"].(string)
	if p.marked && !p.junctor && (kind == "set" || kind == "map") {
		k.errs = append(k.errs, field.Invalid(at.Child("x-kubernetes-list-type"), kind,
			"must be atomic in a sensitive field"))
	}
}

// items checks the items of a list: items of a set are their own keys, items of a map have keys that must not be
// sensitive.
func (k *sensitiveCheck) items(s map[string]any, at *field.Path, p spot) {
	items, _ := s["items"].(map[string]any)
	if items == nil {
		return
	}
	below := p
	below.fields = p.fields.Items()
	at = at.Child("items")
	if p.marked {
		k.schema(items, at, below)
		return
	}
	switch kind, _ := s["x-kubernetes-list-type"].(string); kind {
	case "set":
		below.forbids = "must not be used in items of a list with x-kubernetes-list-type=set"
	case "map":
		below.forbids, below.exactly = "must not be used for items of a list with x-kubernetes-list-type=map", true
		keys, _ := s["x-kubernetes-list-map-keys"].([]any)
		for _, key := range keys {
			name, _ := key.(string)
			if dig(items, "properties", name, sensitive.Keyword) == true {
				k.errs = append(k.errs, field.Forbidden(at.Child("properties").Key(name).Child(sensitive.Keyword),
					"must not be used for a key of a list with x-kubernetes-list-type=map"))
			}
		}
	}
	k.schema(items, at, below)
}

// unmarkedVersions returns the served versions without marks in a definition with a conversion webhook and marks in
// other versions: fields that the webhook renames are visible there.
func unmarkedVersions(obj map[string]any) (names []string) {
	if dig(obj, "spec", "conversion", "strategy") != "Webhook" || sensitiveFields(obj) == nil {
		return nil
	}
	eachSchema(obj, func(name string, _ *field.Path, version, schema map[string]any) {
		if version["served"] == true && sensitive.Of(schema) == nil {
			names = append(names, name)
		}
	})
	return names
}

// sensitiveWarnings returns warnings about the marks of a definition.
func sensitiveWarnings(obj map[string]any) (out []string) {
	if names := unmarkedVersions(obj); len(names) > 0 {
		out = append(out, "no field of version "+strings.Join(names, ", ")+" is marked with "+sensitive.Keyword+
			", but fields of other versions are: if conversion gives them other names, they are shown there")
	}
	return out
}
