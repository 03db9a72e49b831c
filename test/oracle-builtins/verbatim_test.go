package oraclebuiltins

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/randfill"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// TestDocumentsKeepTheirBytes sends objects with documents in protobuf, as client-go does, and stores them so. The
// documents are the same as in kube-apiserver's store.
func TestDocumentsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	storing := convert.NewStoring(kinds.Resources(), convert.StoringOptions{Media: codec.Protobuf})
	compared := map[string]int{}
	for _, r := range kinds.Resources() {
		if r.Virtual || r.Secondary || !r.Storage.HoldsDocuments() {
			continue
		}
		for _, v := range r.Versions {
			t.Run(r.Qualified()+" "+v.Name, func(t *testing.T) {
				for seed := range int64(100) {
					compared[r.Kind] += compareDocuments(t, storing, r, v, seed)
				}
			})
		}
	}
	for _, kind := range []string{"ControllerRevision", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"} {
		if compared[kind] < 20 {
			t.Errorf("%d documents in %s", compared[kind], kind)
		}
	}
	if len(compared) != 4 {
		t.Errorf("more kinds: %v", compared)
	}
}

func compareDocuments(
	t *testing.T, storing *convert.Storing, r *catalog.Resource, v *catalog.Version, seed int64,
) int {
	t.Helper()
	gvk := schema.FromAPIVersionAndKind(r.APIVersion(v), r.Kind)
	typed := v.New().(runtime.Object)
	fill := func(d *runtime.RawExtension, c randfill.Continue) { d.Raw = []byte(randomDocument(c)) }
	filler(seed).Funcs(fill).Fill(typed)
	typed.GetObjectKind().SetGroupVersionKind(gvk)
	var body, stored bytes.Buffer
	if err := protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme).Encode(typed, &body); err != nil {
		t.Fatal(err)
	}
	theirs := protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)
	storage := schema.GroupVersion{Group: r.Group, Version: r.Storage.Name}
	kube := legacyscheme.Codecs.CodecForVersions(theirs, theirs, storage,
		schema.GroupVersion{Group: r.Group, Version: runtime.APIVersionInternal})
	obj, err := runtime.Decode(kube, body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Encode(obj, &stored); err != nil {
		t.Fatal(err)
	}
	want := r.Storage.New()
	if _, err := codec.FromProtobuf(stored.Bytes(), want); err != nil {
		t.Fatal(err)
	}

	sent := decode.Body{Data: body.Bytes(), Type: codec.Protobuf}
	tree, _, err := decode.Read(context.Background(), sent, false, gvk, v.New)
	if err != nil {
		t.Fatal(err)
	}
	if v != r.Storage && r.Convert != nil {
		if err := r.Convert(v, r.Storage, tree); err != nil {
			t.Fatal(err)
		}
	}
	tree["apiVersion"] = r.APIVersion(r.Storage)
	raw := codec.EncodeStored(tree).JSON
	texts := append(decode.Documents(context.Background(), sent, v, ""),
		decode.Documents(context.Background(), sent, v, "status")...)
	value, _ := storing.Encode(r, raw, storing.Keep(r, raw, texts, nil)...)
	got := r.Storage.New()
	if _, err := codec.FromProtobuf(value, got); err != nil {
		t.Fatalf("%v: %q", err, value)
	}
	if ours, kubes := codec.Documents(got, nil), codec.Documents(want, nil); !slices.Equal(ours, kubes) {
		t.Errorf("seed %d: %q, kube has %q", seed, ours, kubes)
	}
	return len(codec.Documents(got, nil))
}

// randomDocument returns an object in JSON with unusual notation.
func randomDocument(c randfill.Continue) string {
	blank := func() string { return []string{"", "", "", " ", "\n", "\t "}[c.Intn(6)] }
	values := []string{`1`, `1.0`, `-0`, `1e3`, `"<\u00e4>"`, `"\/"`, `null`, `true`, `[]`, `[1, 2]`, `{"y":1,"x":2}`}
	text := blank() + "{"
	for i := range c.Intn(4) {
		if i > 0 {
			text += "," + blank()
		}
		text += blank() + []string{`"a"`, `"b"`, `"c"`, `"\u0061"`, `"<"`}[c.Intn(5)] + blank() + ":" + blank() +
			values[c.Intn(len(values))] + blank()
	}
	return text + "}" + blank()
}
