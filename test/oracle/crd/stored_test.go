package crd

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// TestStoredFormMatchesUpstream stores definitions, unchanged and after random changes. kube-apiserver's codec for its
// store reads our stored form with the same meaning, and we read the form of that codec.
func TestStoredFormMatchesUpstream(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	upstream := codecs.LegacyCodec(apiextensionsv1beta1.SchemeGroupVersion) // the version that kube-apiserver stores
	form := crd.Form()
	// asV1 returns a client's view of an internal object.
	asV1 := func(t *testing.T, obj runtime.Object) *apiextensionsv1.CustomResourceDefinition {
		out := &apiextensionsv1.CustomResourceDefinition{}
		if err := scheme.Convert(obj.(*apiextensions.CustomResourceDefinition), out, nil); err != nil {
			t.Fatal(err)
		}
		return out
	}
	each(t, func(t *testing.T, name string, base map[string]any) {
		r := rand.New(rand.NewPCG(uint64(len(name)), 11))
		for round := range fixture.Setting("ORACLE_ROUNDS", 3) {
			obj := runtime.DeepCopyJSON(base)
			if round > 0 {
				disturb(r, obj)
			}
			if _, err := crd.Normalize(obj); err != nil {
				continue
			}
			crd.Rules().Default(obj) // as with all stored objects
			ours, err := form.Encode(mustJSON(obj))
			if err != nil {
				t.Fatal(err)
			}
			read, gvk, err := upstream.Decode(ours, nil, nil)
			if err != nil || gvk.Version != "v1beta1" {
				t.Fatalf("%s: %v %v", ours, gvk, err)
			}
			equal(t, name, obj, asV1(t, read), &apiextensionsv1.CustomResourceDefinition{})

			theirs, err := runtime.Encode(upstream, read)
			if err != nil {
				t.Fatal(err)
			}
			for _, stored := range [][]byte{ours, theirs} {
				raw, err := form.Decode(stored)
				var back map[string]any
				if err == nil {
					err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &back)
				}
				if err != nil || back["apiVersion"] != "apiextensions.k8s.io/v1" {
					t.Fatalf("%v: %s", err, raw)
				}
				if sorted, err := json.Marshal(back); err != nil || string(sorted) != string(raw) {
					t.Fatalf("keys are not sorted: %s", raw)
				}
				equal(t, name, back, asV1(t, read), &apiextensionsv1.CustomResourceDefinition{})
			}
		}
	})
}
