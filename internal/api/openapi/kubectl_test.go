package openapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/explain"
	explainv3 "k8s.io/kubectl/pkg/explain/v2"
	kubectlopenapi "k8s.io/kubectl/pkg/util/openapi"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// What kubectl does with the documents, through its own code.
func TestKubectl(t *testing.T) {
	c := catalog.New(namespaces(t), crontabs(t, "stable.example.com", 1))
	h := handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r, c.Snapshot())
	}))
	defer server.Close()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}

	verifier := resource.NewQueryParamVerifierV3(nil, client.OpenAPIV3(), resource.QueryParamFieldValidation)
	for _, gvk := range []schema.GroupVersionKind{{Version: "v1", Kind: "Namespace"},
		{Group: "stable.example.com", Version: "v1", Kind: "CronTab"},
		{Group: "stable.example.com", Version: "v1beta1", Kind: "CronTab"}} {
		if err := verifier.HasSupport(gvk); err != nil {
			t.Errorf("fieldValidation of %s: %v", gvk, err)
		}
	}

	gvr := schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}
	for name, test := range map[string]struct {
		gvr       schema.GroupVersionResource
		fields    []string
		recursive bool
	}{
		"explain":           {gvr, nil, false},
		"explain-recursive": {gvr, nil, true},
		"explain-field":     {gvr, []string{"spec", "env"}, false},
		"explain-metadata":  {gvr, []string{"metadata", "uid"}, false},
		"explain-namespace": {schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
			[]string{"spec", "image"}, false},
	} {
		var out bytes.Buffer
		if err := explainv3.PrintModelDescription(test.fields, &out, client.OpenAPIV3(), test.gvr, test.recursive,
			"plaintext"); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name, out.Bytes())
	}

	doc, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := kubectlopenapi.NewOpenAPIData(doc)
	if err != nil {
		t.Fatal(err)
	}
	gvk := schema.GroupVersionKind{Group: "stable.example.com", Version: "v1", Kind: "CronTab"}
	kind := kinds.LookupResource(gvk)
	if kind == nil {
		t.Fatalf("%s is not in the v2 document", gvk)
	}
	var out bytes.Buffer
	if err := explain.PrintModelDescription([]string{"spec"}, &out, kind, gvk, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain-v2", out.Bytes())
}
