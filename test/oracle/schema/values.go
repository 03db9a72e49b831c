package schema

import (
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
)

// samples has, for each format, strings that have it and strings that nearly have it.
var samples = map[string][]string{
	"bsonobjectid": {"507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901", "507F1F77BCF86CD799439011",
		"507f1f77bcf86cd79943901g", "507f1f77bcf86cd7994390111"},
	"uri":   {"http://a/b", "/a", "a", "", "http://[::1]", "mailto:a", "http://a b"},
	"email": {"a@b.c", "A <a@b.c>", "a", "@b", "a@b, c@d", "<>"},
	"hostname": {"a.b.com", "a", "1.com", "-a.com", "a_b.com", "☃.com", "a..com", "a.b.c1", "xn--a.example",
		"a.com."},
	"ipv4": {"1.2.3.4", "01.2.3.4", "1.2.3", "::1", "::ffff:1.2.3.4", "1.2.3.256"},
	"ipv6": {"::1", "1.2.3.4", "::ffff:1.2.3.4", ":::", "fe80::1%eth0"},
	"cidr": {"1.2.3.4/8", "01.2.3.4/8", "::/0", "1.2.3.4", "1.2.3.4/33"},
	"mac":  {"00:00:5e:00:53:01", "02-00-5e-10-00-00-00-01", "0000.5e00.5301", "00:00"},
	"uuid": {"a8098c1a-f86e-11da-bd1a-00112448be3e", "a8098c1af86e11dabd1a00112448be3e",
		"A8098C1A-F86E-11DA-BD1A-00112448BE3E", "a8098c1a-f86e-11da-bd1a-00112448be3",
		"a8098c1a--f86e-11da-bd1a-00112448be3e"},
	"uuid3": {"bcd02e22-68f0-3046-a512-327cca9def8f", "bcd02e22-68f0-4046-a512-327cca9def8f",
		"bcd02e2268f03046a512327cca9def8f"},
	"uuid4": {"025b0d74-00a2-4048-bf57-227c5111bb34", "025b0d74-00a2-4048-cf57-227c5111bb34",
		"025b0d74-00a2-3048-bf57-227c5111bb34", "025B0D74-00A2-4048-BF57-227C5111BB34"},
	"uuid5":  {"886313e1-3b8a-5372-9b90-0c9aee199e5d", "886313e1-3b8a-5372-7b90-0c9aee199e5d"},
	"isbn":   {"0321751043", "978-0321751041", "978 0321751041", "0321751044", "007462542X", "007462542x"},
	"isbn10": {"0321751043", "978-0321751041", "0-321-75104-3", "007462542X"},
	"isbn13": {"0321751043", "978-0321751041", "9780321751040"},
	"creditcard": {"4111-1111-1111-1111", "4111111111111112", "x4111111111111111", "378282246310005",
		"213100000000001", "5555555555554444"},
	"ssn":      {"111-11-1111", "111 11-1111", "111111111", "111-11-11111"},
	"hexcolor": {"#FFFFFF", "fff", "#ffff", "##fff", "ggg"},
	"rgbcolor": {"rgb(1,2,3)", "rgb( 1 , 2 , 255 )", "rgb(1,2,256)", "rgb(01,2,3)"},
	"byte":     {"YQ==", "YWI=", "YWJj", "YQ=", "Y===", "", "YW-j", "====", "YWJjYQ=="},
	"date":     {"2020-02-29", "2021-02-29", "2020-2-1", "2020-02-29T00:00:00Z"},
	"duration": {"1s", "3h2m", "1 day", "2 weeks and 3 dayz", "5", "5 lightyears", "99999999999999999999 s",
		"1d2x", "3 HOURS", "µs", "2µs"},
	"date-time": {"2020-01-01T00:00:00Z", "2020-01-01t00:00:00z", "2020-01-01T00:00:00.123+01:00",
		"2020-01-01T24:00:00Z", "2020-01-01T00:00:00", "2020-01-01T00:00:00é1z", "2020-01-01T00:00:00zTfoo",
		"2020-01-01T00:00:00+99:99", "2020-01-01T00:60:00Z", "x", "2020-01-01T00:00:00z1z", "2020-01-01T00:00:00\n1z"},
	"k8s-short-name": {"a", "a-b", "-a", "A", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
	"k8s-long-name":  {"a.b", "a..b", "a.-b", ".a"},
	"password":       {"x"},
}

// decode decodes JSON as a request is decoded.
func decode(text []byte) any {
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &v); err != nil {
		panic(err)
	}
	return v
}

// value makes a value near p.
func (g *generator) value(p *apiextensionsv1.JSONSchemaProps, depth int) any {
	if g.in(g.wild) {
		return g.any(2)
	}
	if len(p.Enum) > 0 && g.in(60) {
		return decode(pick(g, p.Enum).Raw)
	}
	if p.Nullable && g.in(15) {
		return nil
	}
	kind := p.Type
	if p.XIntOrString {
		kind = pick(g, []string{"integer", "string"})
	}
	switch kind {
	case "string":
		return g.text(p.Format)
	case "integer":
		return g.integer()
	case "number":
		if g.in(50) {
			return g.integer()
		}
		return pick(g, floats)
	case "boolean":
		return g.in(50)
	case "array":
		return g.elements(p, depth)
	case "object":
		return g.fields(p, depth)
	}
	return g.any(2)
}

func (g *generator) text(format string) string {
	if format == "datetime" {
		format = "date-time"
	}
	if list := samples[format]; list != nil && g.in(80) {
		return pick(g, list)
	}
	return pick(g, texts)
}

func (g *generator) integer() int64 {
	if g.in(70) {
		return int64(g.IntN(12) - 2)
	}
	return pick(g, integers)
}

func (g *generator) elements(p *apiextensionsv1.JSONSchemaProps, depth int) any {
	list := []any{}
	if depth < -6 {
		return list
	}
	for range g.IntN(5) {
		if p.Items != nil {
			list = append(list, g.value(p.Items.Schema, depth-1))
		} else {
			list = append(list, g.any(1))
		}
	}
	return list
}

func (g *generator) fields(p *apiextensionsv1.JSONSchemaProps, depth int) any {
	m := map[string]any{}
	if depth < -6 {
		return m
	}
	for name := range p.Properties {
		if g.in(70) {
			child := p.Properties[name]
			m[name] = g.value(&child, depth-1)
		}
	}
	if a := p.AdditionalProperties; a != nil {
		for range g.IntN(4) {
			if a.Schema != nil {
				m[pick(g, names)] = g.value(a.Schema, depth-1)
			} else {
				m[pick(g, names)] = g.any(2)
			}
		}
	}
	for _, name := range p.Required {
		if _, ok := m[name]; !ok && g.in(60) {
			m[name] = g.any(1)
		}
	}
	if p.XEmbeddedResource {
		g.identity(m)
	}
	if g.in(20) {
		m[pick(g, names)] = g.any(3)
	}
	return m
}

// identity adds the identifying fields of a resource to m, sometimes malformed.
func (g *generator) identity(m map[string]any) {
	if g.in(90) {
		m["apiVersion"] = pick(g, []any{"v1", "a/v1", "a/b/c", "", int64(1)})
	}
	if g.in(90) {
		m["kind"] = pick(g, []any{"Pod", "pod", "P od", "", nil})
	}
	if g.in(80) {
		m["metadata"] = g.metadata()
	}
}

func (g *generator) metadata() any {
	if g.in(6) {
		return g.any(2)
	}
	meta := map[string]any{}
	for range g.IntN(5) {
		switch g.IntN(12) {
		case 0:
			meta["name"] = pick(g, []any{"a", "a/b", "", "..", int64(1), nil})
		case 1:
			meta["generateName"] = pick(g, []any{"a-", "a%", ""})
		case 2:
			meta["namespace"] = pick(g, []any{"ns", "n/s", ""})
		case 3:
			meta["labels"] = pick(g,
				[]any{map[string]any{"a": "b"}, map[string]any{}, map[string]any{"a b": "c"},
					map[string]any{"a": int64(1)}, nil})
		case 4:
			meta["annotations"] = pick(g, []any{map[string]any{"a": "b"}, map[string]any{"a b": "c"}, "x"})
		case 5:
			meta["creationTimestamp"] = pick(g, []any{nil, "2020-01-01T00:00:00Z", "x"})
		case 6:
			meta["finalizers"] = pick(g, []any{[]any{"a/b"}, []any{""}, []any{}})
		case 7:
			meta["ownerReferences"] = pick(g,
				[]any{[]any{map[string]any{"kind": "A", "name": "b", "uid": "c", "apiVersion": "v1"}},
					[]any{map[string]any{"x": "y"}}, "x"})
		case 8:
			meta["generation"] = pick(g, []any{int64(1), int64(-1), 1.5})
		case 9:
			meta["unknown"] = g.any(1)
		case 10:
			meta["managedFields"] = pick(g,
				[]any{
					[]any{
						map[string]any{
							"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
							"fieldsV1": map[string]any{"f:a": map[string]any{}},
						},
					}, []any{},
				})
		case 11:
			meta["deletionGracePeriodSeconds"] = pick(g, []any{int64(1), "x"})
		}
	}
	return meta
}

// any makes a value without regard to a schema.
func (g *generator) any(depth int) any {
	k := g.IntN(9)
	if depth <= 0 && k > 6 {
		k = g.IntN(7)
	}
	switch k {
	case 0:
		return nil
	case 1:
		return g.in(50)
	case 2, 3:
		return g.integer()
	case 4:
		return pick(g, floats)
	case 5, 6:
		return pick(g, texts)
	case 7:
		list := []any{}
		for range g.IntN(4) {
			list = append(list, g.any(depth-1))
		}
		return list
	}
	m := map[string]any{}
	for range g.IntN(4) {
		m[pick(g, names)] = g.any(depth - 1)
	}
	return m
}

// resource makes an object near a root schema.
func (g *generator) resource(p *apiextensionsv1.JSONSchemaProps) map[string]any {
	obj := g.fields(p, 4).(map[string]any)
	if g.in(90) {
		obj["apiVersion"], obj["kind"] = "example.com/v1", "Thing"
		obj["metadata"] = map[string]any{"name": "n" + strconv.Itoa(g.IntN(3))}
	}
	return obj
}

// edit makes a copy of v that differs from it here and there: the object of an update.
func (g *generator) edit(p *apiextensionsv1.JSONSchemaProps, v any) any {
	if g.in(7) {
		if p == nil {
			return g.any(2)
		}
		return g.value(p, 2)
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			var child *apiextensionsv1.JSONSchemaProps
			if p != nil {
				if c, ok := p.Properties[key]; ok {
					child = &c
				} else if p.AdditionalProperties != nil {
					child = p.AdditionalProperties.Schema
				}
			}
			if !g.in(4) {
				out[key] = g.edit(child, e)
			}
		}
		return out
	case []any:
		out := []any{}
		var items *apiextensionsv1.JSONSchemaProps
		if p != nil && p.Items != nil {
			items = p.Items.Schema
		}
		for _, e := range v {
			if !g.in(6) {
				out = append(out, g.edit(items, e))
			}
		}
		if len(out) > 1 && g.in(20) {
			g.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		}
		return out
	}
	return v
}
