package crd

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// mutator changes definitions, decoded JSON, at random places. Most changes put a plausible value where it may be
// wrong: random values in random places would die in the decoder.
type mutator struct{ *rand.Rand }

func (m mutator) pick(values ...any) any { return values[m.IntN(len(values))] }

func (m mutator) word() string {
	return m.pick("", "a", "b", "name", "A", "a_b", "a.b", "kind", "metadata", "spec", "status", "apiVersion",
		"generateName", "x-y", strings.Repeat("x", 64), " ", "a\nb", "Ünïcode", "1a", "v1", "v1beta1").(string)
}

func (m mutator) words() []any {
	out := []any{}
	for range m.IntN(3) {
		out = append(out, m.word())
	}
	return out
}

func (m mutator) number() any {
	return m.pick(int64(0), int64(1), int64(-1), int64(5), 1.5, int64(1<<53+1), 1e30)
}

func (m mutator) integer() any { return m.pick(int64(0), int64(1), int64(-1), int64(5), int64(1<<40)) }

func (m mutator) value(depth int) any {
	switch m.IntN(9) {
	case 0:
		return nil
	case 1:
		return m.word()
	case 2:
		return m.number()
	case 3:
		return m.IntN(2) == 0
	case 4:
		return m.integer()
	case 5, 6:
		if depth == 0 {
			return []any{}
		}
		return []any{m.value(depth - 1), m.value(depth - 1)}
	default:
		out := map[string]any{}
		if depth > 0 {
			for range m.IntN(4) {
				out[m.word()] = m.value(depth - 1)
			}
		}
		return out
	}
}

// schema returns a small schema.
func (m mutator) schema(depth int) map[string]any {
	s := map[string]any{}
	if m.IntN(5) > 0 {
		s["type"] = m.pick("object", "array", "string", "integer", "number", "boolean", "object", "array", "string",
			"null", "foo", "")
	}
	switch s["type"] {
	case "array":
		if depth > 0 && m.IntN(5) > 0 {
			s["items"] = m.schema(depth - 1)
		}
	case "object":
		if depth > 0 && m.IntN(3) > 0 {
			props := map[string]any{}
			for range m.IntN(3) {
				props[m.word()] = m.schema(depth - 1)
			}
			s["properties"] = props
		}
	}
	for range m.IntN(3) {
		k := keywords[m.IntN(len(keywords))]
		s[k] = m.keyword(k, depth-1)
		if k == "format" {
			s[k] = m.format()
		}
	}
	return s
}

var keywords = []string{
	"id", "$schema", "$ref", "description", "type", "format", "title", "default", "maximum", "exclusiveMaximum",
	"minimum", "exclusiveMinimum",
	"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties",
	"minProperties", "required",
	"items", "allOf", "oneOf", "anyOf", "not", "properties", "additionalProperties", "patternProperties",
	"dependencies", "additionalItems",
	"definitions", "externalDocs", "example", "nullable", "x-kubernetes-preserve-unknown-fields",
	"x-kubernetes-embedded-resource",
	"x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
	// The rest a second time: they interact.
	"default", "default", "items", "properties", "additionalProperties", "allOf", "anyOf", "type", "nullable",
	"required",
	"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-embedded-resource",
	"x-kubernetes-int-or-string", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields",
}

// format returns a format of any type. Defaults, and only they, are checked against formats of other types.
func (m mutator) format() any {
	return m.pick("", "date-time", "date", "uuid", "byte", "password", "int32", "int64", "float", "double", "float64",
		"no-such-format")
}

func (m mutator) keyword(name string, depth int) any {
	sub := func() map[string]any {
		if depth <= 0 {
			return map[string]any{"type": m.pick("object", "string", "integer", "array")}
		}
		return m.schema(depth)
	}
	clauses := func() any {
		if m.IntN(6) == 0 {
			return []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
		}
		if m.IntN(6) == 0 {
			return []any{
				map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}},
			}
		}
		out := []any{}
		for range m.IntN(3) {
			out = append(out, sub())
		}
		return out
	}
	dictionary := func() any {
		out := map[string]any{}
		for range m.IntN(3) {
			out[m.word()] = sub()
		}
		return out
	}
	switch name {
	case "default", "example":
		return m.value(3)
	case "enum":
		return m.pick([]any{}, []any{"a", "b"}, []any{nil, int64(1)}, []any{m.value(1)})
	case "type":
		return m.pick("object", "array", "string", "integer", "number", "boolean", "null", "foo", "")
	case "pattern":
		return m.pick("", "^a+$", "(", "[", "\\", "^.*$")
	case "maximum", "minimum", "multipleOf":
		return m.number()
	case "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties":
		return m.integer()
	case "required", "x-kubernetes-list-map-keys":
		return m.words()
	case "items":
		if m.IntN(10) == 0 {
			return []any{sub()}
		}
		return sub()
	case "additionalProperties", "additionalItems":
		return m.pick(true, false, sub(), sub())
	case "allOf", "oneOf", "anyOf":
		return clauses()
	case "not":
		return sub()
	case "properties", "patternProperties", "definitions":
		return dictionary()
	case "dependencies":
		return m.pick(map[string]any{}, map[string]any{"a": []any{"b"}}, map[string]any{"a": sub()})
	case "externalDocs":
		return map[string]any{"url": m.word(), "description": m.word()}
	case "x-kubernetes-list-type":
		return m.pick("map", "set", "atomic", "foo", "map", "set")
	case "x-kubernetes-map-type":
		return m.pick("granular", "atomic", "foo", "")
	case "exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable", "x-kubernetes-preserve-unknown-fields",
		"x-kubernetes-embedded-resource", "x-kubernetes-int-or-string":
		return m.IntN(4) > 0
	}
	return m.word()
}

// mutate changes def in one place.
func (m mutator) mutate(def map[string]any) {
	schemas := schemasOf(def)
	switch n := m.IntN(20); {
	case n < 11 && len(schemas) > 0:
		s := schemas[m.IntN(len(schemas))]
		k := keywords[m.IntN(len(keywords))]
		s[k] = m.keyword(k, 3)
		if k == "format" {
			s[k] = m.format()
		}
	case n < 13 && len(schemas) > 0:
		s := schemas[m.IntN(len(schemas))]
		if keys := slices.Sorted(maps.Keys(s)); len(keys) > 0 {
			delete(s, keys[m.IntN(len(keys))])
		}
	case n < 14 && len(schemas) > 0:
		m.special(schemas[m.IntN(len(schemas))])
	case n < 19:
		m.head(def)
	default:
		m.anywhere(def)
	}
}

// special makes s one of the shapes with rules of their own.
func (m mutator) special(s map[string]any) {
	properties := func() map[string]any {
		p, _ := s["properties"].(map[string]any)
		if p == nil {
			p = map[string]any{}
			s["properties"] = p
		}
		return p
	}
	switch m.IntN(6) {
	case 0: // an embedded resource
		s["type"], s["x-kubernetes-embedded-resource"] = "object", true
		if m.IntN(2) == 0 {
			s["x-kubernetes-preserve-unknown-fields"] = true
		}
		if m.IntN(2) == 0 {
			s["default"] = map[string]any{
				"apiVersion": m.pick("v1", "", "a/b/c", int64(1)), "kind": m.pick("Pod", "", "a b"),
				"metadata": m.pick(map[string]any{"name": m.word()}, map[string]any{"labels": int64(1)}, m.value(2)),
			}
		}
	case 1: // metadata
		properties()["metadata"] = map[string]any{
			"type":       "object",
			"properties": map[string]any{m.pick("name", "generateName", "labels").(string): m.schema(1)},
		}
	case 2: // metadata with a default inside an embedded resource
		s["type"], s["x-kubernetes-embedded-resource"] = "object", true
		p := properties()
		p["metadata"] = map[string]any{
			"type": "object",
			"properties": map[string]any{
				m.pick("name", "namespace", "labels", "finalizers").(string): map[string]any{
					"type": m.pick("string", "object", "array"), "items": map[string]any{"type": "string"},
					"default": m.value(2),
				},
			},
		}
		p[m.pick("kind", "apiVersion").(string)] = map[string]any{
			"type": "string", "default": m.pick("Pod", "", "v1", "a/b/c", "a b"),
		}
	case 3: // a map list
		s["type"], s["x-kubernetes-list-type"], s["x-kubernetes-list-map-keys"] = "array", "map", []any{"a", "b"}
		s["items"] = map[string]any{
			"type": "object", "required": []any{"a"}, "properties": map[string]any{"a": m.schema(1), "b": m.schema(1)},
		}
		if m.IntN(2) == 0 {
			s["default"] = m.value(2)
		}
	case 4: // int or string
		s["x-kubernetes-int-or-string"] = true
		if m.IntN(2) == 0 {
			delete(s, "type")
		}
		s[m.pick("anyOf", "allOf").(string)] = m.keyword("anyOf", 2)
		if m.IntN(2) == 0 {
			s["default"] = m.pick("a", int64(1), 1.5, true)
		}
	case 5: // a default of any type beside a format of any type
		s["type"] = m.pick("object", "array", "string", "integer", "number", "boolean")
		s["format"], s["default"] = m.format(), m.value(2)
		if m.IntN(2) == 0 {
			delete(s, "type")
			s["x-kubernetes-preserve-unknown-fields"] = true
		}
	}
}

// rule adds a CEL rule to a schema, or changes an existing one.
func (m mutator) rule(s map[string]any) {
	rules, _ := s["x-kubernetes-validations"].([]any)
	if len(rules) == 0 || m.IntN(3) == 0 {
		rules = append(rules, map[string]any{"rule": m.expression(), "message": "no"})
		s["x-kubernetes-validations"] = rules
	}
	r, ok := rules[m.IntN(len(rules))].(map[string]any)
	if !ok {
		return
	}
	switch m.IntN(7) {
	case 0:
		r["rule"] = m.expression()
	case 1:
		r["message"] = m.pick("", " ", "a\nb", "no")
	case 2:
		r["messageExpression"] = m.pick("", " ", "'a' + string(1)", "1", "self.foo", "'x'")
	case 3:
		r["reason"] = m.pick("FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate",
			"foo", "")
	case 4:
		r["fieldPath"] = m.pick("", " ", ".spec", ".a", "a", ".a\n", ".spec['a']", ".a['b'].c", "['a']")
	case 5:
		r["optionalOldSelf"] = m.IntN(2) == 0
	}
}

func (m mutator) expression() any {
	return m.pick("true", "self == self", "self == oldSelf", "size(self) < 5", "has(self.spec)", "self.all(x, x == x)",
		"self.all(x, self.all(y, x == y))",
		"self.", "", " ", "1", "foo", "true\n&& true", "self.matches('^a')", "oldSelf.hasValue() || true",
		"self.metadata.name == 'a'", "!has(self.a) || self.a == oldSelf.a")
}

// head changes a field outside of schemas.
func (m mutator) head(def map[string]any) {
	spec, _ := def["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	list, _ := spec["versions"].([]any)
	var version map[string]any
	if len(list) > 0 {
		version, _ = list[m.IntN(len(list))].(map[string]any)
	}
	if spec == nil || names == nil || version == nil {
		return
	}
	switch m.IntN(17) {
	case 0:
		names[m.pick("plural", "singular", "kind", "listKind").(string)] = m.word()
	case 1:
		names[m.pick("shortNames", "categories").(string)] = m.words()
	case 2:
		spec["group"] = m.pick("", "a", "example.com", "x.k8s.io", "k8s.io", "a b.c", "b.kubernetes.io")
	case 3:
		spec["scope"] = m.pick("", "Cluster", "Namespaced", "foo")
	case 4:
		spec["preserveUnknownFields"] = m.IntN(2) == 0
	case 5:
		version[m.pick("served", "storage", "deprecated").(string)] = m.IntN(2) == 0
	case 6:
		version["deprecationWarning"] = m.pick("", "old", "a\x00b", strings.Repeat("x", 300), "tab\t")
	case 7:
		version["name"] = m.pick("v1", "", "V1", "v1alpha1", "a.b")
	case 8:
		delete(version,
			m.pick("schema", "storage", "served", "name", "additionalPrinterColumns", "subresources").(string))
	case 9:
		version["schema"] = m.pick(map[string]any{}, map[string]any{"openAPIV3Schema": map[string]any{}},
			map[string]any{"openAPIV3Schema": m.schema(3)}, nil)
	case 10:
		version["subresources"] = m.pick(map[string]any{}, map[string]any{"status": map[string]any{}},
			map[string]any{"scale": map[string]any{
				"specReplicasPath": m.path(), "statusReplicasPath": m.path(), "labelSelectorPath": m.path(),
			}})
	case 11:
		version["additionalPrinterColumns"] = []any{
			map[string]any{
				"name": m.word(), "type": m.pick("string", "foo", "", "date"), "format": m.pick("", "int32", "foo"),
				"jsonPath": m.path(), "priority": int64(m.IntN(2)),
			},
		}
	case 12:
		fields := []any{}
		for range m.IntN(4) * m.IntN(4) {
			fields = append(fields, map[string]any{"jsonPath": m.path()})
		}
		version["selectableFields"] = fields
	case 13:
		copied := cloneJSON(version).(map[string]any)
		copied["name"] = m.pick("v1", "v2", "v1beta1", version["name"])
		copied["storage"] = m.IntN(4) == 0
		spec["versions"] = append(list, copied)
	case 14:
		spec["conversion"] = m.conversion()
	case 15:
		spec["versions"] = m.pick([]any{}, list[:1], nil)
	case 16:
		meta, _ := def["metadata"].(map[string]any)
		if meta != nil {
			meta["annotations"] = map[string]any{
				"api-approved.kubernetes.io": m.pick("", "unapproved, for now", "https://github.com/x/y", "foo"),
			}
			meta["name"] = m.pick(meta["name"], m.word())
		}
	}
}

func (m mutator) path() any {
	return m.pick("", ".", ".spec", ".spec.replicas", ".status.replicas", "spec", ".metadata.name", ".spec.a", ".a",
		"..a", ".status.selector", ".spec['a']", ".a.b.c", ".spec.")
}

func (m mutator) conversion() any {
	c := map[string]any{"strategy": m.pick("None", "Webhook", "Webhook", "", "foo")}
	if m.IntN(5) == 0 {
		return c
	}
	w := map[string]any{
		"conversionReviewVersions": m.pick([]any{"v1"}, []any{}, []any{"v1", "v1"}, []any{"foo"},
			[]any{"A", "v1beta1"}),
	}
	c["webhook"] = w
	if m.IntN(5) == 0 {
		return c
	}
	client := map[string]any{}
	w["clientConfig"] = client
	if m.IntN(2) == 0 {
		client["url"] = m.pick("https://a.b/c", "http://a", "https://", "", ":", "https://u:p@a/?q#f")
	}
	if m.IntN(2) == 0 {
		client["service"] = map[string]any{
			"name": m.pick("a", ""), "namespace": m.pick("b", ""),
			"path": m.pick("", "/", "//", "a", "/a/b/", "/a//b", "/A"),
			"port": m.pick(int64(443), int64(0), int64(70000), nil),
		}
	}
	if m.IntN(2) == 0 {
		client["caBundle"] = m.pick("", "Zm9v",
			"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=")
	}
	return c
}

// anywhere sets or deletes a field of any object, whatever its type.
func (m mutator) anywhere(def map[string]any) {
	var objects []map[string]any
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			objects = append(objects, v)
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k])
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(def)
	o := objects[m.IntN(len(objects))]
	keys := slices.Sorted(maps.Keys(o))
	if len(keys) == 0 || m.IntN(4) == 0 {
		o[m.word()] = m.value(2)
		return
	}
	o[keys[m.IntN(len(keys))]] = m.value(2)
}

// schemasOf returns all schemas of a definition in places where the structural part of a schema may be.
func schemasOf(def map[string]any) (all []map[string]any) {
	spec, _ := def["spec"].(map[string]any)
	list, _ := spec["versions"].([]any)
	var walk func(v any)
	walk = func(v any) {
		s, ok := v.(map[string]any)
		if !ok {
			return
		}
		all = append(all, s)
		walk(s["items"])
		walk(s["additionalProperties"])
		props, _ := s["properties"].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(props)) {
			walk(props[k])
		}
		for _, k := range []string{"allOf", "anyOf", "oneOf"} {
			clauses, _ := s[k].([]any)
			for _, c := range clauses {
				walk(c)
			}
		}
	}
	for _, v := range list {
		version, _ := v.(map[string]any)
		validation, _ := version["schema"].(map[string]any)
		walk(validation["openAPIV3Schema"])
	}
	return all
}
