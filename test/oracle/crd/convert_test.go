package crd

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// TestConvertMatchesUpstream converts definitions to v1beta1 and back, unchanged and after random changes, and compares
// both results with Kubernetes' conversion functions.
func TestConvertMatchesUpstream(t *testing.T) {
	v1, beta := &catalog.Version{Name: "v1"}, &catalog.Version{Name: "v1beta1"}
	compared := 0
	for name, base := range realDefinitions(t) {
		r := rand.New(rand.NewPCG(uint64(len(name)), 7))
		for round := range fixture.Setting("ORACLE_ROUNDS", 8) {
			obj := runtime.DeepCopyJSON(base)
			if round > 0 {
				disturb(r, obj)
			}
			if _, err := crd.Normalize(obj); err != nil {
				continue
			}
			typed := &apiextensionsv1.CustomResourceDefinition{}
			if err := kjson.UnmarshalCaseSensitivePreserveInts(mustJSON(obj), typed); err != nil {
				t.Fatal(err)
			}
			internal := &apiextensions.CustomResourceDefinition{}
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
				typed.DeepCopy(), internal, nil); err != nil {
				t.Fatal(err)
			}
			theirs := &apiextensionsv1beta1.CustomResourceDefinition{}
			if err := apiextensionsv1beta1.Convert_apiextensions_CustomResourceDefinition_To_v1beta1_CustomResourceDefinition(internal, theirs, nil); err != nil {
				t.Fatal(err)
			}
			ours := runtime.DeepCopyJSON(obj)
			if err := crd.Convert(v1, beta, ours); err != nil {
				t.Fatal(err)
			}
			equal(t, name, ours, theirs, &apiextensionsv1beta1.CustomResourceDefinition{})

			// Back, from upstream's form of v1beta1.
			internal = &apiextensions.CustomResourceDefinition{}
			if err := apiextensionsv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(theirs.DeepCopy(), internal, nil); err != nil {
				t.Fatal(err)
			}
			back := &apiextensionsv1.CustomResourceDefinition{}
			if err := apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(
				internal, back, nil); err != nil {
				t.Fatal(err)
			}
			var again map[string]any
			if err := kjson.UnmarshalCaseSensitivePreserveInts(mustMarshal(t, theirs), &again); err != nil {
				t.Fatal(err)
			}
			if err := crd.Convert(beta, v1, again); err != nil {
				t.Fatal(err)
			}
			equal(t, name, again, back, &apiextensionsv1.CustomResourceDefinition{})
			compared += 2
		}
	}
	t.Logf("%d conversions compared", compared)
}

// equal compares our decoded JSON with upstream's typed object. into is a new object of its type.
func equal(t *testing.T, name string, ours map[string]any, theirs, into any) {
	t.Helper()
	if err := json.Unmarshal(mustJSON(ours), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	// Encode both, so that empty and absent fields compare as clients see them.
	got, want := mustMarshal(t, into), mustMarshal(t, theirs)
	var a, b map[string]any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil {
		t.Fatal("not JSON")
	}
	for _, m := range []map[string]any{a, b} {
		delete(m, "apiVersion") // the conversion functions leave it to the codec
		delete(m, "kind")
	}
	if !equality.Semantic.DeepEqual(a, b) {
		t.Fatalf("%s:\nours   %s\ntheirs %s", name, got, want)
	}
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// disturb changes inputs of the conversion: fields that only some versions have, webhooks.
func disturb(r *rand.Rand, obj map[string]any) {
	spec, _ := obj["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return
	}
	if r.IntN(2) == 0 {
		more := runtime.DeepCopyJSON(versions[0].(map[string]any))
		more["name"], more["storage"] = "v9", false
		versions = append(versions, more)
		spec["versions"] = versions
	}
	column := func(name string) map[string]any {
		return map[string]any{"name": name, "type": "string", "jsonPath": ".spec." + name}
	}
	for _, v := range versions {
		version := v.(map[string]any)
		switch r.IntN(6) {
		case 0:
			delete(version, "schema")
		case 1:
			delete(version, "subresources")
		case 2:
			version["additionalPrinterColumns"] = []any{column("a"), column("b")}
		case 3:
			version["selectableFields"] = []any{map[string]any{"jsonPath": ".spec.a"}}
		case 4:
			version["subresources"] = map[string]any{"status": map[string]any{}}
		}
	}
	switch r.IntN(4) {
	case 0:
		spec["preserveUnknownFields"] = r.IntN(2) == 0
	case 1:
		webhook := map[string]any{"conversionReviewVersions": []any{"v1", "v1beta1"}}
		if r.IntN(2) == 0 {
			webhook["clientConfig"] = map[string]any{"url": "https://example.com", "caBundle": "YQ=="}
		}
		spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": webhook}
	case 2:
		spec["conversion"] = map[string]any{"strategy": "None"}
	case 3:
		delete(spec, "conversion")
	}
}
