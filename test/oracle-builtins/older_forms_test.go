package oraclebuiltins

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestOlderForms stores random objects like an older kube-apiserver, in versions with fields in other places, and
// compares our reading with kube-apiserver's conversion.
func TestOlderForms(t *testing.T) {
	t.Parallel()
	storing := convert.NewStoring(kinds.Resources(), convert.StoringOptions{})
	compared := 0
	for _, r := range kinds.Resources() {
		for _, v := range r.Versions {
			if r.Form == nil || r.Group != "resource.k8s.io" || v.Name != "v1beta1" {
				continue
			}
			t.Run(r.APIVersion(v)+" "+r.Kind, func(t *testing.T) {
				for seed := range int64(300) {
					compareOlderForm(t, r, v, storing, seed)
					if t.Failed() {
						return
					}
				}
			})
			compared++
		}
	}
	if compared < 4 {
		t.Errorf("%d kinds compared", compared)
	}
}

func compareOlderForm(
	t *testing.T, r *catalog.Resource, from *catalog.Version, storing *convert.Storing, seed int64,
) {
	t.Helper()
	typed := from.New().(runtime.Object)
	filler(seed).Fill(typed)
	typed.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: r.Group, Version: from.Name, Kind: r.Kind})
	var stored bytes.Buffer
	if err := protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme).Encode(typed, &stored); err != nil {
		t.Fatal(err)
	}
	decoded, err := storing.Decode(r.Prefix, stored.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got := decoded.JSON
	back := from.New().(runtime.Object) // without the fields that protobuf lacks
	if err := runtime.DecodeInto(protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme), stored.Bytes(),
		back); err != nil {
		t.Fatal(err)
	}
	hub, err := legacyscheme.Scheme.UnsafeConvertToVersion(back,
		schema.GroupVersion{Group: r.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		t.Fatal(err)
	}
	out, err := legacyscheme.Scheme.UnsafeConvertToVersion(hub,
		schema.GroupVersion{Group: r.Group, Version: r.Storage.Name})
	if err != nil {
		t.Fatal(err)
	}
	want := tree(t, marshal(t, out))
	want["apiVersion"], want["kind"] = r.Group+"/"+r.Storage.Name, r.Kind
	// A read converts the object through the Go type of v1.
	now := r.Storage.New()
	if err := json.Unmarshal(got, now); err != nil {
		t.Fatal(err)
	}
	if diff := difference("", tree(t, marshal(t, now)), want); len(diff) > 0 {
		t.Errorf("seed %d:\n%s\n%s", seed, strings.Join(diff, "\n"), got)
	}
}
