package openapi

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestTypesOfBuiltinKinds checks the v3 documents of all built-in kinds: types have names, and all references resolve.
func TestTypesOfBuiltinKinds(t *testing.T) {
	c := catalog.New(kinds.Resources()...)
	for _, g := range c.Snapshot().Groups() {
		for _, gv := range g.Versions {
			r := httptest.NewRequest("GET", "/openapi/v3/"+indexPath(g, gv), nil)
			w := httptest.NewRecorder()
			handler().ServeHTTP(w, r, c.Snapshot())
			doc := w.Body.String()
			if w.Code != 200 {
				t.Errorf("%s/%s: %d %s", g.Name, gv.Name, w.Code, doc)
				continue
			}
			for _, part := range strings.Split(doc, `"`+refV3)[1:] {
				name, _, _ := strings.Cut(part, `"`)
				if !strings.Contains(doc, `"`+name+`":{`) {
					t.Errorf("%s/%s: %s is referred to and not there", g.Name, gv.Name, name)
				}
			}
			if strings.Contains(doc, `"$ref":"io.`) {
				t.Errorf("%s/%s: a bare reference", g.Name, gv.Name)
			}
		}
	}
}

func TestTypesHaveNames(t *testing.T) {
	c := catalog.New(kinds.Resources()...)
	r := httptest.NewRequest("GET", "/openapi/v3/apis/apps/v1", nil)
	w := httptest.NewRecorder()
	handler().ServeHTTP(w, r, c.Snapshot())
	for _, want := range []string{
		`"spec":{"description":"Specification of the desired behavior of the Deployment.","default":{},"allOf":[{"$ref":"#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}]`,
		`"io.k8s.api.core.v1.PodSpec":{`,
		`"io.k8s.apimachinery.pkg.api.resource.Quantity":{"description":"Quantity is a fixed-point representation`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("not there: %s", want)
		}
	}
}

// TestDefinitionsOnce parses the v2 document as strictly as client-go: no name occurs twice, although groups share
// types and a custom kind's definition has the name of a built-in type, and all references resolve.
func TestDefinitionsOnce(t *testing.T) {
	taken := crontabs(t, "apiextensions.apis.pkg.apiextensions-apiserver.k8s.io", 1)
	taken.Kind, taken.ListKind = "CustomResourceDefinition", "CustomResourceDefinitionList"
	c := catalog.New(append(kinds.Resources(), taken)...)
	h := handler()
	body := get(t, h, c, "/openapi/v2").Body.Bytes()
	var doc struct {
		Definitions map[string]any `json:"definitions"`
	}
	repeated, err := kjson.UnmarshalStrict(body, &map[string]any{})
	if err != nil || len(repeated) > 0 {
		t.Fatalf("%d names come twice: %v, %v", len(repeated), repeated, err)
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	if name := "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"; doc.Definitions[name] == nil || doc.Definitions[name+"_v2"] == nil {
		t.Error("one of two definitions is not there")
	}
	for _, part := range strings.Split(string(body), `"`+refV2)[1:] {
		if name, _, _ := strings.Cut(part, `"`); doc.Definitions[name] == nil {
			t.Errorf("no definition of %s", name)
		}
	}
	message := &openapi_v2.Document{}
	if err := proto.Unmarshal(get(t, h, c, "/openapi/v2", "Accept",
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf").Body.Bytes(), message); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range message.Definitions.AdditionalProperties {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	if want := slices.Sorted(maps.Keys(doc.Definitions)); !slices.Equal(names, want) {
		t.Errorf("%d definitions in protobuf, %d in JSON", len(names), len(want))
	}
}
