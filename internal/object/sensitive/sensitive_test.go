package sensitive

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// schemaText has the keyword in all sorts of places.
const schemaText = `
type: object
properties:
  spec:
    type: object
    properties:
      host: {type: string}
      password: {type: string, x-kubernetes-sensitive-data: true}
      pin: {type: integer, x-kubernetes-sensitive-data: true}
      tls: {type: object, x-kubernetes-sensitive-data: true, additionalProperties: {type: string}}
      data: {type: object, additionalProperties: {type: string, x-kubernetes-sensitive-data: true}}
      tokens: {type: array, items: {type: string, x-kubernetes-sensitive-data: true}}
      users:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items: {type: object, properties: {name: {type: string}, key: {type: string, x-kubernetes-sensitive-data: true}}}
      hosts:
        type: array
        items: {type: object, properties: {url: {type: string}, key: {type: string, x-kubernetes-sensitive-data: true}}}
`

func read(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "\t", " ")))
	if err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

func fieldsOf(t *testing.T) *Fields { return Of(read(t, schemaText)) }

func encoded(v any) string { return unescaped(codec.AppendJSON(nil, v)) }

// unescaped makes JSON readable.
func unescaped(raw []byte) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(raw))
}

func TestMaskAndUnmask(t *testing.T) {
	f := fieldsOf(t)
	const stored = `{metadata: {name: a}, spec: {host: h, password: p, pin: 7, tls: {a: b}, data: {x: 1x, y: 1y}, tokens: [t1, t2],
  users: [{name: u, key: ku}, {name: v, key: kv}], hosts: [{url: a, key: ka}, {url: b, key: kb}, {url: c}]}}`
	for name, test := range map[string]struct{ sent, want, wrong string }{
		"as it was shown": {sent: ``, want: stored},
		"another field":   {sent: `{spec: {host: i, password: <omitted>}}`, want: `{spec: {host: i, password: p}}`},
		"new values": {
			sent: `{spec: {password: q, pin: 8, tls: {c: d}, tokens: [z]}}`,
			want: `{spec: {password: q, pin: 8, tls: {c: d}, tokens: [z]}}`,
		},
		"the mask where nothing is sensitive": {sent: `{spec: {host: <omitted>}}`, want: `{spec: {host: <omitted>}}`},
		"a map":                               {sent: `{spec: {data: {y: <omitted>, z: n}}}`, want: `{spec: {data: {y: 1y, z: n}}}`},
		"a new name in a map": {sent: `{spec: {data: {z: <omitted>}}}`,
			wrong: `spec.data.z: Invalid value: "<omitted>": not allowed for sensitive fields without a previous value`},
		"items by their keys": {
			sent: `{spec: {users: [{name: v, key: <omitted>}, {name: n, key: new}, {name: u, key: <omitted>}]}}`,
			want: `{spec: {users: [{name: v, key: kv}, {name: n, key: new}, {name: u, key: ku}]}}`,
		},
		"an item under another key": {sent: `{spec: {users: [{name: w, key: <omitted>}]}}`,
			wrong: `spec.users[0].key: Invalid value: "<omitted>": not allowed for sensitive fields without a previous value`},
		"items by their looks": {
			sent: `{spec: {hosts: [{url: b, key: <omitted>}, {url: new}, {url: a, key: <omitted>}, {url: n, key: kn}]}}`,
			want: `{spec: {hosts: [{url: b, key: kb}, {url: new}, {url: a, key: ka}, {url: n, key: kn}]}}`,
		},
		"a changed item in its place": {
			sent: `{spec: {hosts: [{url: z, key: <omitted>}, {url: b, key: <omitted>}, {url: c}]}}`,
			want: `{spec: {hosts: [{url: z, key: ka}, {url: b, key: kb}, {url: c}]}}`,
		},
		"a changed item in a shorter list": {sent: `{spec: {hosts: [{url: z, key: <omitted>}]}}`,
			wrong: `spec.hosts[0]: Invalid value: "<omitted>": is ambiguous between several ` +
				`stored values: write the value itself`},
		"a changed item in the place of one that has moved": {
			sent: `{spec: {hosts: [{url: b, key: <omitted>}, {url: z, key: <omitted>}, {url: c}]}}`,
			wrong: `spec.hosts[1]: Invalid value: "<omitted>": is ambiguous between several ` +
				`stored values: write the value itself`,
		},
		"one more in a list of values": {sent: `{spec: {tokens: [<omitted>, <omitted>, n]}}`, want: `{spec: {tokens: [t1, t2, n]}}`},
		"one before a list of values": {sent: `{spec: {tokens: [n, <omitted>, <omitted>]}}`,
			wrong: `spec.tokens[2]: Invalid value: "<omitted>": not allowed for sensitive fields without a previous value`},
		"one less in a list of values": {sent: `{spec: {tokens: [<omitted>]}}`,
			wrong: `spec.tokens[0]: Invalid value: "<omitted>": is ambiguous between several ` +
				`stored values: write the value itself`},
	} {
		old := read(t, stored)
		sent := f.MaskObject(old)
		if test.sent != "" {
			sent = read(t, test.sent)
		}
		sent = codec.CloneObject(sent)
		errs := f.UnmaskObject(sent, old)
		if text := errs.ToAggregate(); test.wrong != "" && (text == nil || text.Error() != test.wrong) {
			t.Errorf("%s: error %v, want %s", name, text, test.wrong)
		} else if test.wrong == "" && (len(errs) > 0 || !codec.Equal(sent, read(t, test.want))) {
			t.Errorf("%s: %s, %v, want %s", name, encoded(sent), errs, test.want)
		}
		if !codec.Equal(old, read(t, stored)) {
			t.Errorf("%s: the stored object has changed: %s", name, encoded(old))
		}
	}
	if errs := f.UnmaskObject(read(t, `{spec: {pin: <omitted>}}`), nil); len(errs) != 1 {
		t.Errorf("the mask in a new object: %v", errs)
	}
}

func TestMask(t *testing.T) {
	f := fieldsOf(t)
	for stored, want := range map[string]string{
		`{spec: {password: p, host: p, tls: {a: p}, data: {x: p}, tokens: [p, p], users: [{name: n, key: p}]}}`: `{spec: {password: <omitted>,
		  host: p, tls: <omitted>, data: {x: <omitted>}, tokens: [<omitted>, <omitted>], users: [{name: n, key: <omitted>}]}}`,
		`{spec: {password: null, pin: 0, tls: []}}`: `{spec: {password: null, pin: <omitted>, tls: <omitted>}}`,
		`{spec: p}`:                     `{spec: p}`,
		`{spec: {users: p, data: [p]}}`: `{spec: {users: p, data: [p]}}`,
		`{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: p}}}`:                `{metadata: {}}`,
		`{metadata: {annotations: {a: b, kubectl.kubernetes.io/last-applied-configuration: p}, spec: x}}`: `{metadata: {annotations: {a: b}, spec: x}}`,
		`{metadata: {managedFields: [{manager: m, fieldsV1: {"f:spec": {"f:tls": {".": {}, "f:p": {}},
		  "f:host": {}, "f:data": {"f:x": {}}, "f:tokens": {'v:"p"': {}}, "f:users": {'k:{"name":"n"}': {"f:key": {}}, 'v:"p"': {}}}}}]}}`: `
		  {metadata: {managedFields: [{manager: m, fieldsV1: {"f:spec": {"f:tls": {".": {}},
		  "f:host": {}, "f:data": {"f:x": {}}, "f:tokens": {}, "f:users": {'k:{"name":"n"}': {"f:key": {}}}}}}]}}`,
	} {
		obj := read(t, stored)
		if got := f.MaskObject(obj); !codec.Equal(got, read(t, want)) {
			t.Errorf("%s is shown as %s, want %s", stored, encoded(got), want)
		}
		if !codec.Equal(obj, read(t, stored)) {
			t.Errorf("%s has changed: %s", stored, encoded(obj))
		}
	}
	if f := Of(read(t, `{type: object, properties: {a: {type: string}}}`)); f != nil {
		t.Errorf("nothing is marked, but %+v", f)
	}
	var none *Fields
	if obj := read(t, `{spec: {password: p}}`); !reflect.DeepEqual(none.MaskObject(obj), obj) {
		t.Error("nothing masks something")
	}
}

// TestRoundTrip masks random objects and puts the values back.
func TestRoundTrip(t *testing.T) {
	f := fieldsOf(t)
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		obj := randomObject(r)
		shown := f.MaskObject(obj)
		if text := encoded(shown); strings.Contains(text, "hidden") {
			t.Fatalf("seed %d: %s shows %s", seed, encoded(obj), text)
		}
		if !codec.Equal(f.MaskObject(shown), shown) {
			t.Fatalf("seed %d: masked again, %s is another", seed, encoded(shown))
		}
		back := codec.CloneObject(shown)
		if errs := f.UnmaskObject(back, obj); len(errs) > 0 || !codec.Equal(back, obj) {
			t.Fatalf("seed %d: %s comes back as %s, %v", seed, encoded(obj), encoded(back), errs)
		}
	}
}

// randomObject has "hidden" in all values that are sensitive.
func randomObject(r *rand.Rand) map[string]any {
	hidden := func() any { return fmt.Sprintf("hidden-%d", r.IntN(4)) }
	plain := func() any { return fmt.Sprintf("plain-%d", r.IntN(2)) }
	spec := map[string]any{"host": plain()}
	put := func(name string, v any) {
		if r.IntN(4) > 0 {
			spec[name] = v
		}
	}
	put("password", hidden())
	put("pin", hidden())
	put("tls", map[string]any{"hidden": []any{hidden()}})
	put("data", map[string]any{"a": hidden(), "b": hidden()})
	var tokens, users, hosts []any
	for i := range r.IntN(4) {
		tokens = append(tokens, hidden())
		users = append(users, map[string]any{"name": fmt.Sprint(i), "key": hidden()})
		hosts = append(hosts, map[string]any{"url": plain(), "key": hidden()})
	}
	put("tokens", tokens)
	put("users", users)
	put("hosts", hosts)
	meta := map[string]any{"name": "a", "annotations": map[string]any{"a": "b"}, "managedFields": []any{map[string]any{
		"fieldsV1": map[string]any{"f:spec": map[string]any{"f:tls": map[string]any{"f:hidden": map[string]any{}}}},
	}}}
	if r.IntN(2) == 0 {
		meta["annotations"].(map[string]any)[lastApplied] = "hidden"
	}
	return map[string]any{"metadata": meta, "spec": spec}
}

func TestFind(t *testing.T) {
	f := fieldsOf(t)
	for path, want := range map[string]Relation{
		"": Above, "metadata.name": Apart, "spec": Above, "spec.host": Apart, "spec.password": Within,
		".spec.password": Within,
		"spec.tls.a.b":   Within, "spec.tls[a]": Within, "spec.data": Above, "spec.data[a.b]": Within,
		"spec.data.a.b":  Within,
		"spec.tokens[0]": Within, "spec.users[1]": Above, "spec.users[1].name": Apart, "spec.users[1].key": Within,
		`.spec.users[?(@.name=="a]b")].key`: Within, ".spec.users[*].key": Within, ".spec['password']": Within,
		"..password": Within, ".spec.*": Within, "spec.passwords": Apart,
		"spec.data." + strings.Repeat("a.", 5000): Within,
	} {
		if got := f.Find(path); got != want {
			t.Errorf("%q leads to %v, want %v", path, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	f := fieldsOf(t)
	at := func(path string) *field.Path { return field.NewPath(path) }
	type list = field.ErrorList
	for want, e := range map[string]*field.Error{
		`spec.host: Invalid value: "hidden": no`: field.Invalid(at("spec.host"), "hidden", "no"),
		`spec.password: Invalid value: "<omitted>": spec.password in body should match '^a'`: field.Invalid(at("spec.password"), "hidden",
			"spec.password in body should match '^a'"),
		`spec.password: Invalid value: "<omitted>": spec.password in body must be of type date`: field.Invalid(at("spec.password"), "hidden",
			`spec.password in body must be of type date: "hidden"`),
		`spec.password: Invalid value: "<omitted>": static`:      field.Invalid(at("spec.password"), "hidden", "static"),
		`spec.password: Invalid value: "<omitted>": ` + notShown: field.Invalid(at("spec.password"), "hidden", "not hidden"),
		`spec.tls: Invalid value: "<omitted>": ` + notShown:      field.Invalid(at("spec.tls[hidden]"), "hidden", "hidden"),
		`spec.tokens[1]: Duplicate value: "<omitted>"`:           field.Duplicate(at("spec.tokens[1]"), "hidden"),
		`spec: Invalid value: "object": error evaluating rule: self.a`: field.Invalid(at("spec"), "object",
			"strconv: hidden evaluating rule: self.a"),
		`spec.users[0]: Duplicate value: {"key":"<omitted>","name":"a"}`: field.Duplicate(at("spec.users[0]"),
			map[string]any{"name": "a", "key": "hidden"}),
		`<nil>: Invalid value: "object": error evaluating rule: self.a`: field.Invalid(nil, "object",
			"strconv: hidden evaluating rule: self.a"),
		`spec.pin: Unsupported value: "<omitted>": supported values: "1"`: field.NotSupported(at("spec.pin"), "hidden", []string{"1"}),
	} {
		got := f.Redact(list{e}, func(s string) bool { return s == "static" })[0].Error()
		got = unescaped([]byte(got))
		if got != want {
			t.Errorf("%s is said as\n%s, want\n%s", e, got, want)
		}
	}
}

func TestMaskPatch(t *testing.T) {
	f := fieldsOf(t)
	for sent, want := range map[string]string{
		`{"spec":{"password":"hidden","host":"h","pin":null}}`: `{"spec":{"host":"h","password":"<omitted>","pin":null}}`,
		`[{"op":"add","path":"/spec/password","value":"hidden"},{"op":"test","path":"/spec/host","value":"h"},{"op":"remove","path":"/spec/x"}]`: `[{"op":"add","path":"/spec/password","value":"<omitted>"},{"op":"test","path":"/spec/host","value":"h"},{"op":"remove","path":"/spec/x"}]`,
		`[{"op":"add","path":"/spec/users/-","value":{"name":"n","key":"hidden"}},{"op":"add","path":"/spec/tls/a","value":"hidden"}]`:           `[{"op":"add","path":"/spec/users/-","value":{"key":"<omitted>","name":"n"}},{"op":"add","path":"/spec/tls/a","value":"<omitted>"}]`,
		`[{"op":"add","path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration","value":"hidden"}]`:                       `[{"op":"add","path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration","value":"<omitted>"}]`,
		`[{"op":"add","path":"/metadata/annotations/a","value":"b"},{"op":"add","path":"","value":{"spec":{"pin":1}}}]`:                          `[{"op":"add","path":"/metadata/annotations/a","value":"b"},{"op":"add","path":"","value":{"spec":{"pin":"<omitted>"}}}]`,
		`"hidden"`: `"<omitted>"`, `{"spec`: `"<omitted>"`, `["hidden"]`: `["<omitted>"]`,
	} {
		if got := unescaped(f.MaskPatch([]byte(sent))); got != want {
			t.Errorf("%s is recorded as\n%s, want\n%s", sent, got, want)
		}
	}
}

func TestUnion(t *testing.T) {
	a := Of(read(t, `{properties: {a: {x-kubernetes-sensitive-data: true}, l: {items: {properties: {x: {x-kubernetes-sensitive-data: true}}}}}}`))
	b := Of(read(t, `{properties: {b: {x-kubernetes-sensitive-data: true}, l: {x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k],
		items: {properties: {z: {x-kubernetes-sensitive-data: true}}}}}}`))
	got := encoded(a.Union(b).MaskObject(read(t, `{a: 1, b: 2, c: 3, l: [{x: 1, z: 2, k: 3}]}`)))
	if want := `{"a":"<omitted>","b":"<omitted>","c":3,"l":[{"k":3,"x":"<omitted>","z":"<omitted>"}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if a.Union(nil) != a || (*Fields)(nil).Union(b) != b {
		t.Error("the union with nothing is another")
	}
}

func TestMaskAnswer(t *testing.T) {
	f := fieldsOf(t)
	for doc, want := range map[string]string{
		`{"kind":"DB","spec":{"pin":1}}`:                                        `{"kind":"DB","spec":{"pin":"<omitted>"}}`,
		`{"items":[{"spec":{"pin":1}}],"kind":"DBList"}`:                        `{"items":[{"spec":{"pin":"<omitted>"}}],"kind":"DBList"}`,
		`{"kind":"Table","rows":[{"cells":["a"],"object":{"spec":{"pin":1}}}]}`: `{"kind":"Table","rows":[{"cells":["a"],"object":{"spec":{"pin":"<omitted>"}}}]}`,
		`{"kind":"Status","message":"m"}`:                                       `{"kind":"Status","message":"m"}`,
		`hidden`:                                                                `"<omitted>"`,
	} {
		if got := unescaped(f.MaskAnswer([]byte(doc))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if want[0] == '{' && !json.Valid([]byte(want)) {
			t.Error(want)
		}
	}
	before, after := read(t, `{spec: {pin: 1, password: p, host: h}}`), read(t, `{spec: {pin: 2, password: p, host: i}}`)
	was, _ := f.MaskChange(before, after)
	if got := encoded(was); got != `{"spec":{"host":"h","password":"<omitted>","pin":"<omitted> formerly"}}` {
		t.Errorf("before a change: %s", got)
	}
	if before["spec"].(map[string]any)["pin"] != int64(1) {
		t.Error("the object before the change has changed")
	}
}
