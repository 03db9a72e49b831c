package openapi

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// real returns definitions of well-known projects, from outside of the repository, with matching file names.
func real(b testing.TB, pattern string) *catalog.Catalog {
	files, err := filepath.Glob("../../../../shared/crds/real/" + pattern)
	if err != nil || len(files) == 0 {
		b.Skip("no real definitions beside the repository")
	}
	var resources []*catalog.Resource
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			b.Fatal(err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		names := crd.Spec.Names
		r := &catalog.Resource{
			Group: crd.Spec.Group, Plural: names.Plural, Kind: names.Kind, ListKind: names.ListKind, Namespaced: true,
			Served: true,
			Prefix: crd.Spec.Group + "/" + names.Plural, Definition: catalog.Definition{Name: crd.Name},
		}
		for _, from := range crd.Spec.Versions {
			v := &catalog.Version{Name: from.Name, Served: from.Served, Status: true}
			if from.Schema != nil {
				v.Source = func() (*apiextensionsv1.JSONSchemaProps, error) { return from.Schema.OpenAPIV3Schema, nil }
			}
			r.Versions = append(r.Versions, v)
		}
		resources = append(resources, r)
	}
	return catalog.New(resources...)
}

func benchmark(b *testing.B, path, accept string) {
	c := real(b, "*.yaml")
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", "gzip")
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		handler().ServeHTTP(w, r, c.Snapshot())
		b.ReportMetric(float64(w.Body.Len()), "bytes")
	}
}

func BenchmarkIndex(b *testing.B) { benchmark(b, "/openapi/v3", "application/json") }

func BenchmarkV3(b *testing.B) {
	benchmark(b, "/openapi/v3/apis/monitoring.coreos.com/v1", "application/json")
}

func BenchmarkV3Protobuf(b *testing.B) {
	benchmark(b, "/openapi/v3/apis/monitoring.coreos.com/v1", formsV3[1].accept)
}

func BenchmarkV2(b *testing.B) { benchmark(b, "/openapi/v2", "application/json") }

func BenchmarkV2Protobuf(b *testing.B) { benchmark(b, "/openapi/v2", formsV2[1].accept) }
