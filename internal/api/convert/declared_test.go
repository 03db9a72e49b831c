package convert

import (
	"context"
	"errors"
	"strings"
	"testing"

	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// ruled is hooked with rules: spec.a becomes spec.b, and an object with the value "bad" cannot be converted.
func ruled() *catalog.Resource {
	r := hooked()
	r.Declared = func(from, to *catalog.Version, obj catalog.Object) error {
		spec := object.Map(obj, "spec")
		name, other := "a", "b"
		if from.Name == "v2" {
			name, other = "b", "a"
		}
		if spec[name] == "bad" {
			return errors.New("spec.a is bad")
		}
		if v, ok := spec[name]; ok {
			delete(spec, name)
			spec[other] = v
		}
		return nil
	}
	return r
}

func thing(name, value string) object.Object {
	return object.Object{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": object.Object{"name": name},
		"spec": object.Object{"a": value}}
}

// TestDeclared checks that rules convert without a call of the webhook, and leave the original as it was.
func TestDeclared(t *testing.T) {
	r := ruled()
	hook := &fake{}
	c := New(Options{Call: hook.call})
	obj := thing("one", "x")
	out, err := c.Convert(t.Context(), r, r.Storage, r.Versions[0], obj)
	if err != nil || out["apiVersion"] != "example.com/v2" || object.String(out, "spec", "b") != "x" {
		t.Fatal(out, err)
	}
	if obj["apiVersion"] != "example.com/v1" || object.String(obj, "spec", "a") != "x" {
		t.Errorf("the original is now %v", obj)
	}
	good, err := watchcache.NewEntry("one", []byte(`{"apiVersion":"example.com/v1","kind":"Thing",`+
		`"metadata":{"name":"one","uid":"1"},"spec":{"a":"x"}}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := watchcache.NewEntry("two", []byte(`{"apiVersion":"example.com/v1","kind":"Thing",`+
		`"metadata":{"name":"two","uid":"2"},"spec":{"a":"bad"}}`), 2)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := c.Entry(t.Context(), r, r.Versions[0], good)
	if err != nil || !strings.Contains(string(entry.JSON()), `"b":"x"`) {
		t.Error(entry, err)
	}
	_, err = c.Entries(t.Context(), r, r.Versions[0], []*watchcache.Entry{good, bad})
	if want := "conversion of things.example.com two by the rules of its definition: spec.a is bad"; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if n := hook.calls.Load(); n != 0 {
		t.Errorf("%d calls of the webhook", n)
	}
}

// TestFunctionPrecedesRules checks that a function of the embedding program replaces the rules.
func TestFunctionPrecedesRules(t *testing.T) {
	r := ruled()
	c := New(Options{Functions: map[gvk.GroupKind]Function{{Group: "example.com", Kind: "Thing"}: func(
		_ context.Context, objs []object.Object, apiVersion string,
	) ([]object.Object, error) {
		return []object.Object{{"apiVersion": apiVersion, "kind": "Thing", "metadata": objs[0]["metadata"],
			"spec": object.Object{"b": "function"}}}, nil
	}}})
	out, err := c.Convert(t.Context(), r, r.Storage, r.Versions[0], thing("one", "x"))
	if err != nil || object.String(out, "spec", "b") != "function" {
		t.Error(out, err)
	}
}
