package crd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// realDefinitions returns the definitions of well-known projects as JSON, by file name. They are not part of the
// repository.
func realDefinitions(t testing.TB) map[string][]byte {
	files, _ := filepath.Glob("../../../../shared/crds/real/*.yaml")
	if len(files) == 0 {
		t.Skip("no ../shared/crds/real beside the repository")
	}
	out := map[string][]byte{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = yaml.YAMLToJSON(raw); err != nil {
			t.Fatal(err)
		}
		if object(t, raw)["kind"] == "CustomResourceDefinition" {
			out[filepath.Base(f)] = raw
		}
	}
	return out
}

func object(t testing.TB, raw []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestRealDefinitions runs each definition through a create and compares the result with a round trip through the Go
// type.
func TestRealDefinitions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, raw := range realDefinitions(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := object(t, raw)
			rules := Rules()
			if _, err := rules.Decode(obj); err != nil {
				t.Fatal(err)
			}
			typed := &apiextensionsv1.CustomResourceDefinition{}
			if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, typed); err != nil {
				t.Fatal(err)
			}
			want := object(t, encode(t, typed))
			if got := encode(t, obj); !reflect.DeepEqual(object(t, got), want) {
				t.Fatalf("normal form differs from the round trip\n got %.2000s\nwant %.2000s", got, encode(t, typed))
			}
			fast, err := Decode(obj)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(object(t, encode(t, fast)), want) {
				t.Fatal("Decode differs from encoding/json")
			}
			rules.Default(obj)
			rules.PrepareCreate(obj, catalog.Env{Now: now})
			if errs := rules.Validate(t.Context(), obj); len(errs) > 0 {
				t.Fatalf("invalid: %.2000v", errs)
			}
			stored := encode(t, obj)
			head, err := DecodeWithoutSchemas(stored)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Resource(head, 7, func() ([]byte, error) { return stored, nil })
			if err != nil {
				t.Fatal(err)
			}
			if !r.Served || r.Kind != typed.Spec.Names.Kind {
				t.Fatalf("served %v kind %q", r.Served, r.Kind)
			}
			for _, v := range r.Versions {
				if s, err := v.Schema(); err != nil || s == nil {
					t.Errorf("version %s: %v %v", v.Name, s, err)
				}
			}
		})
	}
}
