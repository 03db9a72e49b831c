package openapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	openapiclient "k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/explain"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/openapi"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// TestKubectl uses the documents through kubectl's own code.
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

	for name, test := range map[string]struct {
		resource string
		flags    explain.ExplainFlags
	}{
		"explain":           {resource: "crontabs"},
		"explain-recursive": {resource: "crontabs", flags: explain.ExplainFlags{Recursive: true}},
		"explain-field":     {resource: "crontabs.spec.env"},
		"explain-metadata":  {resource: "crontabs.metadata.uid"},
		"explain-namespace": {resource: "namespaces.spec.image"},
		"explain-v2": {
			resource: "crontabs.spec", flags: explain.ExplainFlags{OutputFormat: "plaintext-openapiv2"},
		},
	} {
		out, err := runExplain(client, test.flags, test.resource)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name, out)
	}
}

// runExplain runs kubectl explain through the command, because the functions below it change with kubectl's versions.
func runExplain(client discovery.DiscoveryInterface, flags explain.ExplainFlags, resource string) ([]byte, error) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	flags.IOStreams = streams
	if flags.OutputFormat == "" {
		flags.OutputFormat = "plaintext"
	}
	options, err := flags.ToOptions(explainFactory{client: client}, "kubectl", []string{resource})
	if err != nil {
		return nil, err
	}
	err = errors.Join(options.Validate(), options.Run())
	return out.Bytes(), err
}

// explainFactory is the part of kubectl's factory that explain uses. It maps CronTab and Namespace without discovery.
type explainFactory struct {
	cmdutil.Factory
	client discovery.DiscoveryInterface
}

func (f explainFactory) ToRESTMapper() (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	crontabs := schema.GroupVersion{Group: "stable.example.com", Version: "v1"}
	mapper.Add(crontabs.WithKind("CronTab"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	return mapper, nil
}

func (f explainFactory) OpenAPIV3Client() (openapiclient.Client, error) {
	return f.client.OpenAPIV3(), nil
}

func (f explainFactory) OpenAPISchema() (openapi.Resources, error) {
	document, err := f.client.OpenAPISchema()
	if err != nil {
		return nil, err
	}
	return openapi.NewOpenAPIData(document)
}
