package wire

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/script"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestColumnsDirect runs the script about columns against the other server of HTTP/2.
func TestColumnsDirect(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, func(c *bowsprit.Config) { c.HTTP.HTTP2Server = "direct" })
	script.Run(t, "testdata/columns.txt", s.RESTConfig())
}

// columnsDefinition has an expression in a field that the Go type lacks.
const columnsDefinition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "%[1]ss.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
		"names": {"plural": "%[1]ss", "kind": "%[1]s"}, "versions": [{"name": "v1", "served": true, "storage": true,
			"additionalPrinterColumns": [{"name": "Text", "type": "string", "expression": "self.text + '!'"}],
			"schema": {"openAPIV3Schema": {"type": "object", "properties": {"text": {"type": "string"}}}}}]}}`

// TestTypedClientsKeepColumns updates definitions by clients with Kubernetes' Go types.
func TestTypedClientsKeepColumns(t *testing.T) {
	t.Parallel()
	config := testserver.Start(t).RESTConfig()
	for kind, contentType := range map[string]string{
		"json": "application/json", "proto": "application/vnd.kubernetes.protobuf",
	} {
		t.Run(kind, func(t *testing.T) {
			client := definitionsClient(t, config, contentType)
			const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
			do(t, client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(
				[]byte(fmt.Sprintf(columnsDefinition, kind))))
			var def apiextensionsv1.CustomResourceDefinition
			at := path + "/" + kind + "s.example.com"
			if err := client.Get().AbsPath(at).Do(t.Context()).Into(&def); err != nil {
				t.Fatal(err)
			}
			def.Spec.Names.ShortNames = []string{"short" + kind}
			if err := client.Put().AbsPath(at).Body(&def).Do(t.Context()).Into(&def); err != nil {
				t.Fatal(err)
			}
			objects := "/apis/example.com/v1/" + kind + "s"
			do(t, client.Post().AbsPath(objects).SetHeader("Content-Type", "application/json").Body(
				[]byte(`{"apiVersion": "example.com/v1", "kind": "`+kind+`", "metadata": {"name": "a"}, "text": "x"}`)))
			got := do(t, client.Get().AbsPath(objects).SetHeader("Accept",
				"application/json;as=Table;g=meta.k8s.io;v=v1"))
			if !strings.Contains(got, `"cells":["a","x!"]`) {
				t.Errorf("got %s", got)
			}
		})
	}
}
