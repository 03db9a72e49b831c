package crd

import (
	"fmt"
	"strings"
	"testing"
)

// TestForm checks the exact stored form of definitions, and that it is read without decoding: bytes common to both
// versions stay unchanged.
func TestForm(t *testing.T) {
	for _, c := range []struct{ name, v1, stored string }{
		{
			"plain",
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"},"spec":{"conversion":{"strategy":"None"},"group":"b","names":{"kind":"A"},"scope":"Cluster","versions":[{"name":"v1","schema":{"x":1.0}},{"name":"v2"}]},"status":{"storedVersions":["v1"]}}`,
			`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"},"spec":{"conversion":{"strategy":"None"},"group":"b","names":{"kind":"A"},"preserveUnknownFields":false,"scope":"Cluster","version":"v1","versions":[{"name":"v1","schema":{"x":1.0}},{"name":"v2"}]},"status":{"storedVersions":["v1"]}}`,
		},
		{
			"all that differs",
			`{"apiVersion":"apiextensions.k8s.io/v1","metadata":{},"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"u"},"conversionReviewVersions":["v1"]}},"preserveUnknownFields":true,"scope":"Cluster","versions":[{"additionalPrinterColumns":[{"jsonPath":".a","name":"A"}],"name":"v1"}]}}`,
			`{"apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{},"spec":{"conversion":{"conversionReviewVersions":["v1"],"strategy":"Webhook","webhookClientConfig":{"url":"u"}},"preserveUnknownFields":true,"scope":"Cluster","version":"v1","versions":[{"additionalPrinterColumns":[{"JSONPath":".a","name":"A"}],"name":"v1"}]}}`,
		},
		{
			"no review versions",
			`{"apiVersion":"apiextensions.k8s.io/v1","spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"u"},"conversionReviewVersions":null}},"scope":"Cluster","versions":[{"name":"v1"}]}}`,
			`{"apiVersion":"apiextensions.k8s.io/v1beta1","spec":{"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"u"}},"preserveUnknownFields":false,"scope":"Cluster","version":"v1","versions":[{"name":"v1"}]}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			stored, err := toStored([]byte(c.v1))
			if err != nil || string(stored) != c.stored {
				t.Errorf("stored %v\n%s\nwant\n%s", err, stored, c.stored)
			}
			if v1, err := fromStored(stored); err != nil || string(v1) != c.v1 {
				t.Errorf("read %v\n%s\nwant\n%s", err, v1, c.v1)
			}
		})
	}
}

// TestFormOfOthers reads definitions stored by other servers.
func TestFormOfOthers(t *testing.T) {
	const want = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"conversion":{"strategy":"None"},"names":{"kind":"A","listKind":"AList","singular":"a"},"scope":"Namespaced","versions":[{"additionalPrinterColumns":[{"jsonPath":".a"}],"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":true}]}}`
	for name, stored := range map[string]string{
		"kube-apiserver's":              `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","spec":{"version":"v1","names":{"singular":"a","kind":"A","listKind":"AList"},"scope":"Namespaced","validation":{"openAPIV3Schema":{"type":"object"}},"versions":[{"name":"v1","served":true,"storage":true}],"additionalPrinterColumns":[{"JSONPath":".a"}],"conversion":{"strategy":"None"},"preserveUnknownFields":false}}` + "\n",
		"without defaults":              `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","spec":{"additionalPrinterColumns":[{"JSONPath":".a"}],"names":{"kind":"A"},"preserveUnknownFields":false,"validation":{"openAPIV3Schema":{"type":"object"}},"version":"v1"}}`,
		"an earlier one of this server": want,
	} {
		if got, err := fromStored([]byte(stored)); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	for _, broken := range []string{``, `{`, `[]`, `{"apiVersion":"apiextensions.k8s.io/v1beta1"`,
		`{"apiVersion":"apiextensions.k8s.io/v1beta1","spec":{"version":"v1",}}`} {
		if got, err := fromStored([]byte(broken)); err == nil {
			t.Errorf("%s: %s", broken, got)
		}
	}
}

// FuzzForm checks that a stored definition is restored exactly or refused, and that nothing panics.
func FuzzForm(f *testing.F) {
	f.Add(`"conversion":{"strategy":"None"},"scope":"Cluster","versions":[{"name":"v1"}]`)
	f.Add(
		`"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{}}},"scope":"","versions":[{"additionalPrinterColumns":[{"jsonPath":".a"}],"name":"v1"}]`)
	f.Fuzz(func(t *testing.T, spec string) {
		raw := []byte(`{"apiVersion":"apiextensions.k8s.io/v1","spec":{` + spec + `}}`)
		stored, err := toStored(raw)
		if err != nil {
			return
		}
		if !strings.HasPrefix(string(stored), string(betaPrefix)) {
			t.Fatalf("%s", stored)
		}
		if _, err := fromStored(stored); err != nil {
			t.Fatalf("%v: %s", err, stored)
		}
	})
}

func BenchmarkForm(b *testing.B) {
	obj := fromYAML(b, cronTab)
	if _, err := Normalize(obj); err != nil {
		b.Fatal(err)
	}
	defaultObject(obj)
	props := map[string]any{}
	for i := range 200 {
		props[fmt.Sprintf("field%d", i)] = map[string]any{
			"type": "string", "description": strings.Repeat("what it means ", 10),
		}
	}
	dig(obj, "spec", "versions").([]any)[0].(map[string]any)["schema"] = map[string]any{
		"openAPIV3Schema": map[string]any{"type": "object", "properties": props},
	}
	raw := encode(b, obj)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		stored, err := toStored(raw)
		if err == nil {
			_, err = fromStored(stored)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
