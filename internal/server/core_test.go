package server

import (
	"net/http"
	"slices"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// TestCoreAlone starts the core with only namespaces and definitions, without any other part: it serves a definition
// and an object of it, from the first request to the deletion of both.
func TestCoreAlone(t *testing.T) {
	t.Parallel()
	server, err := New(config.Config{Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	two := part.Part{Name: "the kinds of the core",
		Resources: func(_ *part.Host, _ []*catalog.Resource) []*catalog.Resource {
			return slices.DeleteFunc(kinds.Resources(), func(r *catalog.Resource) bool {
				return r.Plural != "namespaces" && r.Plural != "customresourcedefinitions"
			})
		}}
	p := prepare(server.config, []part.Part{two})
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	r, c := start(t, server, p)
	served := 0
	r.host.Catalog.Snapshot().Resources(func(*catalog.Resource) { served++ })
	if served != 2 {
		t.Errorf("%d kinds are served", served)
	}
	c.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "tabs.example.com"},
		"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "tabs", "kind": "Tab"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer", "default": 7}}}}}}}]}}`,
		http.StatusCreated)
	c.do("POST", "/apis/example.com/v1/namespaces/default/tabs",
		`{"apiVersion": "example.com/v1", "kind": "Tab", "metadata": {"name": "a"}, "spec": {}}`, http.StatusCreated)
	obj := c.do("GET", "/apis/example.com/v1/namespaces/default/tabs/a", "", http.StatusOK)
	if spec, _ := obj["spec"].(map[string]any); spec["n"] != 7.0 {
		t.Errorf("the default is missing: %v", obj)
	}
	c.do("POST", "/apis/example.com/v1/namespaces/absent/tabs",
		`{"apiVersion": "example.com/v1", "kind": "Tab", "metadata": {"name": "a"}, "spec": {}}`, http.StatusNotFound)
	c.do("GET", "/api/v1/namespaces/default/pods", "", http.StatusNotFound)
	c.do("GET", "/openapi/v3/apis/example.com/v1", "", http.StatusOK)
	c.do("GET", "/readyz", "", http.StatusOK)
	c.do("DELETE", "/apis/example.com/v1/namespaces/default/tabs/a", "", http.StatusOK)
	c.do("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tabs.example.com", "", http.StatusOK)
}
