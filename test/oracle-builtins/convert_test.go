package oraclebuiltins

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestConvert converts random objects of the kinds with two forms into the other one, as kube does through its internal
// types, and back.
func TestConvert(t *testing.T) {
	t.Parallel()
	for _, r := range kinds.Resources() {
		// kube's scheme has no definitions; test/oracle/crd compares them
		if r.Convert == nil || r.Group == "apiextensions.k8s.io" {
			continue
		}
		versions := r.Versions
		if r.Secondary {
			versions = append(versions, r.Storage)
		}
		for _, from := range versions {
			for _, to := range versions {
				if from == to {
					continue
				}
				t.Run(r.APIVersion(from)+" to "+r.APIVersion(to), func(t *testing.T) {
					for seed := range int64(200) {
						compareConversion(t, r, from, to, seed)
						if t.Failed() {
							return
						}
					}
				})
			}
		}
	}
}

func compareConversion(t *testing.T, r *catalog.Resource, from, to *catalog.Version, seed int64) {
	t.Helper()
	doc := randomObject(t, r, from, seed)
	kind := func(v *catalog.Version) schema.GroupVersionKind {
		return schema.FromAPIVersionAndKind(r.APIVersion(v), r.Kind)
	}
	in, err := legacyscheme.Scheme.New(kind(from))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, in); err != nil {
		t.Fatal(err)
	}
	hub, err := legacyscheme.Scheme.UnsafeConvertToVersion(in,
		schema.GroupVersion{Group: kind(from).Group, Version: "__internal"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := legacyscheme.Scheme.UnsafeConvertToVersion(hub, kind(to).GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	want := tree(t, marshal(t, out))
	got := tree(t, doc)
	if err := r.Convert(from, to, got); err != nil {
		t.Fatal(err)
	}
	for _, obj := range []map[string]any{got, want} {
		obj["apiVersion"], obj["kind"] = r.APIVersion(to), r.Kind
	}
	if diff := difference("", tree(t, marshal(t, got)), want); len(diff) > 0 {
		t.Errorf("seed %d:\n%s\n%s", seed, strings.Join(diff, "\n"), doc)
	}
}
