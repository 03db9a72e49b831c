package openapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/builtin"
	"github.com/bowsprit/bowsprit/internal/catalog"
)

// TestTypesOfBuiltinKinds looks into the v3 documents of all built-in kinds: types have names, and every name that is referred
// to is there.
func TestTypesOfBuiltinKinds(t *testing.T) {
	c := catalog.New(builtin.Resources()...)
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
	c := catalog.New(builtin.Resources()...)
	r := httptest.NewRequest("GET", "/openapi/v3/apis/apps/v1", nil)
	w := httptest.NewRecorder()
	handler().ServeHTTP(w, r, c.Snapshot())
	for _, want := range []string{
		`"spec":{"description":"Specification of the desired behavior of the Deployment.","default":{},"allOf":[{"$ref":"#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}]`,
		`"io.k8s.api.core.v1.PodSpec":{`, `"io.k8s.apimachinery.pkg.api.resource.Quantity":{"description":"Quantity is a fixed-point representation`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("not there: %s", want)
		}
	}
}
