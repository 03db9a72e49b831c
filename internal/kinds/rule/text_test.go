package rule

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// oneFile makes a file system with one text.
func oneFile(text string) fstest.MapFS { return fstest.MapFS{"a.txt": {Data: []byte(text)}} }

func decoded(t *testing.T, text string) object.Object {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(object.Object)
}

// TestOperators shows each operator of rules at work.
func TestOperators(t *testing.T) {
	t.Parallel()
	old := "{a: was}"
	for _, c := range []struct{ rules, obj, old, want string }{
		{"a required", `{a: x}`, "", ""},
		{"a required", `{a: ""}`, "", "a: Required value"},
		{"a required -- please", `{}`, "", "a: Required value: please"},
		{"a set", `{a: ""}`, "", ""},
		{"a set", `{}`, "", "a: Required value"},
		{"a unset", `{a: ""}`, "", ""},
		{"a unset -- no", `{a: x}`, "", "a: Forbidden: no"},
		{"a unset? -- no", `{a: ""}`, "", "a: Forbidden: no"},
		{"a one A B", `{a: B}`, "", ""},
		{"a one A B", `{}`, "", ""},
		{"a one A B", `{a: C}`, "", `a: Unsupported value: "C": supported values: "A", "B"`},
		{"a one? A B", `{a: ""}`, "", `a: Unsupported value: "": supported values: "A", "B"`},
		{"a one! A B", `{}`, "", `a: Unsupported value: "": supported values: "A", "B"`},
		{`a one! A ""`, `{}`, "", ""},
		{"a format absolute", `{a: x}`, "", `a: Invalid value: "x": must be an absolute path`},
		{"a format absolute", `{}`, "", ""},
		{"a format? absolute", `{a: ""}`, "", `a: Invalid value: "": must be an absolute path`},
		{"a format! absolute", `{}`, "", `a: Invalid value: "": must be an absolute path`},
		{"a length 2", `{a: abc}`, "", "a: Too long: may not be more than 2 bytes"},
		{"a port", `{a: 0}`, "", ""},
		{"a port", `{a: 70000}`, "", "a: Invalid value: 70000: must be between 1 and 65535, inclusive"},
		{"a port!", `{}`, "", "a: Invalid value: 0: must be between 1 and 65535, inclusive"},
		{"a nonnegative", `{a: -1}`, "", "a: Invalid value: -1: must be greater than or equal to 0"},
		{"a min 3 -- more", `{a: 2}`, "", "a: Invalid value: 2: more"},
		{"a min 3 -- more", `{}`, "", ""},
		{"a min! 3 -- more", `{}`, "", "a: Invalid value: 0: more"},
		{"a range 1 2", `{a: 3}`, "", "a: Invalid value: 3: must be between 1 and 2, inclusive"},
		{"a same", `{a: x}`, "", ""},
		{"a same", `{a: x}`, old, `a: Invalid value: "x": field is immutable`},
		{"a same", `{a: was}`, old, ""},
		{"a sealed", `{a: x}`, "", ""},
		{"a sealed", `{a: x}`, old, `a: Invalid value: null: field is immutable`},
		{"a sealed", `{a: was}`, old, ""},
		{"a same", `{a: was, b: {}}`, old, ""},
		{"a ! mark", `{a: x}`, old, `a: Invalid value: "x": was "was"`},
		{"a.b[] ! mark", `{a: {b: [x, "y"]}}`, "",
			`[a.b[0]: Invalid value: "x": was null, a.b[1]: Invalid value: "y": was null]`},
		{"a{} ! mark", `{a: {k: x, j: "y"}}`, "",
			`[a[j]: Invalid value: "y": was null, a[k]: Invalid value: "x": was null]`},
		{"a : Inner", `{a: {}}`, "", "a.x: Required value"},
		{"a : Inner", `{}`, "", ""},
		{". union way\n\tb | Inner\n\tc | Inner in refused", `{b: {x: 1}}`, "", ""},
		{". union way\n\tb | Inner\n\tc | Inner in refused", `{c: {}}`, "", "in.x: Required value"},
		{". union way\n\tb | Inner\n\tc | Inner in refused", `{b: {x: 1}, c: {}}`, "",
			"refused: Forbidden: may not specify more than 1 way"},
	} {
		functions := Functions{"mark": func(val *Validation, p Value) {
			val.Invalid(p.Path, p.New, "was "+string(codec.AppendJSON(nil, p.Old)))
		}}
		text := "rules A\n\t" + c.rules + "\nrules Inner\n\tx required\nrules Unused\n\t. ! mark\n"
		rules, err := newText(oneFile(text), nil, functions)
		if err != nil {
			t.Fatalf("%s: %v", c.rules, err)
		}
		errs := rules.Create(t.Context(), "A", decoded(t, c.obj))
		if c.old != "" {
			errs = rules.Update(t.Context(), "A", decoded(t, c.obj), decoded(t, c.old), "")
		}
		got := ""
		if len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != c.want {
			t.Errorf("%s of %s:\ngot  %s\nwant %s", c.rules, c.obj, got, c.want)
		}
	}
}

// TestParts checks which parts run in a creation, an update and an update through a subresource.
func TestParts(t *testing.T) {
	t.Parallel()
	rules, err := newText(oneFile("rules A\n\ta required\nrules A/create\n\tb required\nrules A/update\n\tc required\n"+
		"rules A/status\n\td required\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	obj := object.Object{}
	for _, c := range []struct{ got, want string }{
		{rules.Create(t.Context(), "A", obj).ToAggregate().Error(), "[a: Required value, b: Required value]"},
		{rules.Update(t.Context(), "A", obj, obj, "").ToAggregate().Error(), "[a: Required value, c: Required value]"},
		{rules.Update(t.Context(), "A", obj, obj, "status").ToAggregate().Error(), "d: Required value"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
	errs := append(rules.Create(t.Context(), "B", obj), rules.Update(t.Context(), "A", obj, obj, "scale")...)
	if len(errs) > 0 {
		t.Errorf("without rules: %v", errs)
	}
}

// TestRatchet checks that an object that violated a rule before an update may keep doing so, and that another one may
// not begin.
func TestRatchet(t *testing.T) {
	t.Parallel()
	const ugly Exception = "a is not ugly"
	functions := Functions{"notUgly": func(val *Validation, p Value) {
		if p.New == "ugly" && !val.Excused(ugly) {
			val.Invalid(p.Path, p.New, "ugly")
		}
	}}
	rules, err := newText(oneFile("rules A\n\ta ! notUgly\n"), nil, functions)
	if err != nil {
		t.Fatal(err)
	}
	broken, fine := object.Object{"a": "ugly"}, object.Object{"a": "fair"}
	if errs := rules.Create(t.Context(), "A", broken); len(errs) != 1 {
		t.Errorf("new: %v", errs)
	}
	if errs := rules.Update(t.Context(), "A", broken, fine, ""); len(errs) != 1 {
		t.Errorf("begins: %v", errs)
	}
	if errs := rules.Update(t.Context(), "A", broken, broken, ""); len(errs) != 0 {
		t.Errorf("goes on: %v", errs)
	}
}

// TestTextErrors checks that errors in a text are reported when it is parsed, or by Verify.
func TestTextErrors(t *testing.T) {
	t.Parallel()
	f := func(*Validation, Value) {}
	for _, c := range []struct {
		text, want string
		functions  Functions
	}{
		{"rules A\n\ta ! missing\n", "rules of A: no function missing", nil},
		{"rules A\n\ta set\n", "no rule names function f", Functions{"f": f}},
		{"rules A\n\ta ! selector\n", "function selector is there twice", Functions{"selector": f}},
		{"A\n\ta set\n", "neither columns, defaults nor rules", nil},
		{"\ta set\n", "before the first head", nil},
		{"rules A\nrules A\n", "is there already", nil},
		{"rules A\n\ta\n", "has no operator", nil},
		{"rules A\n\ta quite\n", "no operator quite", nil},
		{"rules A\n\ta format nothing\n", "no format nothing", nil},
		{"rules A\n\ta : B\n", "rules of A: no type B", nil},
		{"rules A\n\ta range 1\n", "range takes 2 words, not 1", nil},
		{"rules A\n\ta min x\n", "invalid syntax", nil},
		{"rules A\n\ta required twice\n", "required takes 0 words, not 1", nil},
		{"rules B/status\n\ta required\n", "rules of B/status, which is no kind", nil},
		{"defaults A\n\tx : B\n", "defaults of A: no type B", nil},
		{"defaults A\n\tx\n", "has no value", nil},
		{"defaults A\n\tx ~ 1\n", "no operator ~", nil},
		{"defaults A\n\tx = {\n", "unexpected end of JSON", nil},
		{"defaults B\n\tx = 1\n", "defaults of B, which is neither a kind nor a part of one", nil},
		{"columns B\n\tName\tstring\tname\t0\tx\n", "columns of B, which is no kind", nil},
		{"columns A\n\tName\tstring\n", "has 2 fields, not 5", nil},
		{"columns A\n\tName\tstring\tname\tx\tx\n", "invalid syntax", nil},
	} {
		text, err := newText(oneFile(c.text), nil, c.functions)
		if err == nil {
			err = text.Verify([]*catalog.Resource{{Kind: "A"}})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestImports checks that a text can refer to types of its imports, and must not redefine their names.
func TestImports(t *testing.T) {
	t.Parallel()
	shared, err := newText(oneFile("rules Part\n\tx required\ndefaults Part\n\tx = 1\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := newText(oneFile("rules A\n\tpart : Part\ndefaults A\n\tpart : Part\n"), []*Text{shared})
	if err != nil {
		t.Fatal(err)
	}
	obj := object.Object{"part": object.Object{}}
	if errs := own.Create(t.Context(), "A", obj); len(errs) != 1 || errs[0].Field != "part.x" {
		t.Errorf("rules: %v", errs)
	}
	own.fill("A", obj)
	if errs := own.Create(t.Context(), "A", obj); len(errs) > 0 {
		t.Errorf("after defaults: %v", errs)
	}
	again, err := newText(oneFile("rules Part\n\ty required\n"), []*Text{shared})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Verify(nil); err == nil || !strings.Contains(err.Error(), "Part are there already") {
		t.Errorf("a type of both: %v", err)
	}
}

// TestDefaults shows each operator of defaults at work.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ defaults, obj, want string }{
		{"a = 1", `{}`, `{"a":1}`},
		{"a = 1", `{"a":null}`, `{"a":1}`},
		{"a = 1", `{"a":0}`, `{"a":0}`},
		{`a 0= "x"`, `{"a":""}`, `{"a":"x"}`},
		{"a 0= 2", `{"a":0}`, `{"a":2}`},
		{"a.b = true", `{}`, `{}`},
		{"a.b = true", `{"a":{}}`, `{"a":{"b":true}}`},
		{"a[].b = {}", `{"a":[{},{"b":1}]}`, `{"a":[{"b":{}},{"b":1}]}`},
		{"a{} : B", `{"a":{"k":{}}}`, `{"a":{"k":{"x":[1]}}}`},
		{"a : B", `{"a":[]}`, `{"a":[]}`},
	} {
		text, err := newText(oneFile("defaults A\n\t"+c.defaults+"\ndefaults B\n\tx = [1]\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		obj := decoded(t, c.obj)
		text.fill("A", obj)
		if got := string(codec.AppendJSON(nil, obj)); !sameJSON(t, got, c.want) {
			t.Errorf("%s of %s: %s, want %s", c.defaults, c.obj, got, c.want)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	return Equivalent(decoded(t, a), decoded(t, b)) && a == b
}

// TestValidationEnds checks that rules stop once the request has ended, wherever they are.
func TestValidationEnds(t *testing.T) {
	t.Parallel()
	const many = 5000
	list, dict := make([]any, many), object.Object{}
	for i := range list {
		list[i] = object.Object{"x": "v"}
		dict[fmt.Sprint(i)] = "v"
	}
	for _, lines := range []string{"list[] ! look", "dict{} ! look", "list[] : Item", "deep.list[].x ! look"} {
		ctx, cancel := context.WithCancel(t.Context())
		looked, most := 0, many
		functions := Functions{"look": func(val *Validation, p Value) {
			looked++
			if looked == 100 && most < many {
				cancel()
			}
		}}
		rules, err := newText(oneFile("rules A\n\t"+lines+"\nrules Item\n\tx ! look\n"), nil, functions)
		if err != nil {
			t.Fatal(err)
		}
		obj := object.Object{"list": list, "dict": dict, "deep": object.Object{"list": list}}
		if rules.Create(ctx, "A", obj); looked != many {
			t.Errorf("%s: %d values were looked at, want all", lines, looked)
		}
		looked, most = 0, 100+lookEvery
		if rules.Update(ctx, "A", obj, obj, ""); looked < 100 || looked > most {
			t.Errorf("%s: %d values were looked at, want 100 to %d", lines, looked, most)
		}
		looked = 0
		if rules.Create(ctx, "A", obj); looked != 0 {
			t.Errorf("%s: %d values were looked at after the end", lines, looked)
		}
		cancel()
	}
}
