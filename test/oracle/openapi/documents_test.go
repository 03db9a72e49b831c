package openapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
)

// realDefinitions matches definitions of well-known projects outside of the repository.
const realDefinitions = "../../../../shared/crds/real/*.yaml"

func TestDocuments(t *testing.T) {
	files, err := filepath.Glob(realDefinitions)
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(own) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	if len(files) == 0 {
		t.Logf("%s: none found, comparing testdata only", realDefinitions)
	}
	for _, file := range append(own, files...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(raw), "\n---") {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal([]byte(doc), crd); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if crd.Kind != "CustomResourceDefinition" {
				continue
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			t.Run(crd.Name, func(t *testing.T) {
				t.Parallel()
				compareV3(t, crd)
				compareV2(t, crd)
			})
		}
	}
}

// compareV3 checks that the documents equal upstream's.
func compareV3(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	c := catalog.New(resource(crd))
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		want, err := builder.BuildOpenAPIV3(crd, v.Name, builder.Options{IncludeSelectableFields: true})
		if err != nil {
			t.Fatal(err)
		}
		for name, schema := range want.Components.Schemas {
			if strings.HasSuffix(name, "."+crd.Spec.Names.Kind) && len(schema.Properties) == 0 && v.Schema != nil {
				t.Errorf("v3 %s: upstream ignores the schema, so it is no example", v.Name)
			}
		}
		got := get(t, c, "/openapi/v3/apis/"+crd.Spec.Group+"/"+v.Name)
		differ(t, "v3 "+v.Name, got, parse(t, want))
		if _, err := json.Marshal(decode[spec3.OpenAPI](t, got)); err != nil {
			t.Errorf("v3 %s does not decode: %v", v.Name, err)
		}
	}
}

// compareV2 checks that ours has everything in upstream's document. It may have more only in the parts that all kinds
// share. The info is the server's.
func compareV2(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	merged := &spec.Swagger{}
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		s, err := builder.BuildOpenAPIV2(crd, v.Name, builder.Options{V2: true, IncludeSelectableFields: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Definitions = handler.PruneDefaults(s.Definitions)
		if merged, err = builder.MergeSpecs(merged, s); err != nil {
			t.Fatal(err)
		}
	}
	want := parse(t, merged).(map[string]any)
	got := get(t, catalog.New(resource(crd)), "/openapi/v2").(map[string]any)
	paths := got["paths"].(map[string]any)
	for path := range paths {
		if !strings.HasPrefix(path, "/apis/"+crd.Spec.Group+"/") { // of the server; test/oracle-builtins compares them
			delete(paths, path)
		}
	}
	differ(t, "v2 paths", paths, want["paths"])
	for _, part := range []string{"definitions", "parameters"} {
		g, w := got[part].(map[string]any), want[part].(map[string]any)
		for name := range g {
			if _, ok := w[name]; !ok && (part == "parameters" || strings.HasPrefix(name, "io.k8s.api")) {
				delete(g, name)
			}
		}
		for _, side := range []map[string]any{g, w} { // the list of kinds also depends on the server
			if options, ok := side["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"].(map[string]any); ok {
				delete(options, "x-kubernetes-group-version-kind")
			}
		}
		differ(t, "v2 "+part, g, w)
	}
}

func get(t *testing.T, c *catalog.Catalog, path string) any {
	t.Helper()
	h := openapi.New(openapi.Options{
		Version:    "v1.37.2",
		WriteError: func(_ http.ResponseWriter, _ *http.Request, err error) { t.Errorf("%s: %v", path, err) },
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil), c.Snapshot())
	var v any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

func parse(t *testing.T, v any) any {
	t.Helper()
	return *decode[any](t, v)
}

func decode[T any](t *testing.T, v any) *T {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := json.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// differ reports the first differences between got and want.
func differ(t *testing.T, at string, got, want any) {
	t.Helper()
	g, gotMap := got.(map[string]any)
	w, wantMap := want.(map[string]any)
	switch {
	case reflect.DeepEqual(got, want):
	case gotMap && wantMap:
		for name := range g {
			if _, ok := w[name]; !ok {
				t.Errorf("%s: unwanted %s: %.200v", at, name, g[name])
			}
		}
		for name := range w {
			if _, ok := g[name]; !ok {
				t.Errorf("%s: missing %s: %.200v", at, name, w[name])
				continue
			}
			differ(t, at+" "+name, g[name], w[name])
		}
	default:
		t.Errorf("%s: got %.300v, want %.300v", at, got, want)
	}
}

// resource converts a definition like package crd, as far as documents need it.
func resource(crd *apiextensionsv1.CustomResourceDefinition) *catalog.Resource {
	names := crd.Spec.Names
	r := &catalog.Resource{
		Group: crd.Spec.Group, Plural: names.Plural, Singular: names.Singular, Kind: names.Kind,
		ListKind:   names.ListKind,
		ShortNames: names.ShortNames, Categories: names.Categories,
		Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Prefix:     crd.Spec.Group + "/" + names.Plural, Served: true,
		Definition: catalog.Definition{Name: crd.Name, UID: "uid-of-" + crd.Name, Revision: 1},
	}
	for _, from := range crd.Spec.Versions {
		v := &catalog.Version{
			Name: from.Name, Served: from.Served, PreserveUnknownFields: crd.Spec.PreserveUnknownFields,
		}
		for _, f := range from.SelectableFields {
			v.SelectableFields = append(v.SelectableFields, f.JSONPath)
		}
		if from.Subresources != nil {
			v.Status = from.Subresources.Status != nil
			if s := from.Subresources.Scale; s != nil {
				v.Scale = &catalog.Scale{SpecReplicasPath: s.SpecReplicasPath, StatusReplicasPath: s.StatusReplicasPath}
			}
		}
		if from.Schema != nil {
			v.Source = func() (*apiextensionsv1.JSONSchemaProps, error) { return from.Schema.OpenAPIV3Schema, nil }
		}
		if from.Storage {
			r.Storage = v
		}
		r.Versions = append(r.Versions, v)
	}
	return r
}
