package wire

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/testserver"
)

// typedDefinition has its rules in the spec, in fields that the Go type lacks.
const typedDefinition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "%[1]ss.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
		"names": {"plural": "%[1]ss", "kind": "%[1]s"},
		"conversion": {"strategy": "Declarative", "steps": [{"from": "v1", "to": "v2", "rules": [{"move": "old", "to": "new"}]}]},
		"versions": [
			{"name": "v1", "served": true, "storage": true,
				"schema": {"openAPIV3Schema": {"type": "object", "properties": {"old": {"type": "string"}}}}},
			{"name": "v2", "served": true, "storage": false,
				"schema": {"openAPIV3Schema": {"type": "object", "properties": {"new": {"type": "string"}}}}}]}}`

// TestTypedClientsKeepRules updates definitions by clients with Kubernetes' Go types, which drop fields that the types
// lack.
func TestTypedClientsKeepRules(t *testing.T) {
	t.Parallel()
	config := testserver.Start(t).RESTConfig()
	for kind, contentType := range map[string]string{
		"json": "application/json", "proto": "application/vnd.kubernetes.protobuf",
	} {
		t.Run(kind, func(t *testing.T) {
			client := definitionsClient(t, config, contentType)
			raw := []byte(fmt.Sprintf(typedDefinition, kind))
			const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
			do(t, client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(raw))
			var def apiextensionsv1.CustomResourceDefinition
			at := path + "/" + kind + "s.example.com"
			if err := client.Get().AbsPath(at).Do(t.Context()).Into(&def); err != nil {
				t.Fatal(err)
			}
			def.Labels = map[string]string{"changed": "yes"}
			def.Spec.Names.ShortNames = []string{"short" + kind}
			if err := client.Put().AbsPath(at).Body(&def).Do(t.Context()).Into(&def); err != nil {
				t.Fatal(err)
			}
			if def.Labels["changed"] != "yes" || def.Spec.Conversion.Strategy != "Declarative" {
				t.Errorf("labels %v, conversion %v", def.Labels, def.Spec.Conversion)
			}
			objects := "/apis/example.com/%s/" + kind + "s"
			do(t, client.Post().AbsPath(fmt.Sprintf(objects, "v1")).SetHeader("Content-Type", "application/json").Body(
				[]byte(`{"apiVersion": "example.com/v1", "kind": "`+kind+`", "metadata": {"name": "a"}, "old": "x"}`)))
			got := do(t, client.Get().AbsPath(fmt.Sprintf(objects, "v2")+"/a").SetHeader("Accept", "application/json"))
			if !strings.Contains(got, `"new":"x"`) {
				t.Errorf("in v2: %s", got)
			}
		})
	}
}

// definitionsClient returns a client for definitions, as client-go's typed clients have it.
func definitionsClient(t *testing.T, config *rest.Config, contentType string) *rest.RESTClient {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &apiextensionsv1.SchemeGroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = contentType
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// do sends a request and returns the body of its response.
func do(t *testing.T, r *rest.Request) string {
	t.Helper()
	raw, err := r.Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err, string(raw))
	}
	return string(raw)
}
