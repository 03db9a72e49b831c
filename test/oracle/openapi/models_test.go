package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var update = flag.Bool("update", false, "rewrite the data file of internal/api/openapi")

const models = "../../../internal/api/openapi/models.json"

// TestModels checks that the data file of internal/api/openapi has Kubernetes' document for a sample definition,
// without the sample's own kind.
func TestModels(t *testing.T) {
	sample := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "samples", Kind: "Sample", ListKind: "SampleList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
			},
			Subresources: &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				Scale:  &apiextensionsv1.CustomResourceSubresourceScale{},
			},
		}},
	}}
	v3, err := builder.BuildOpenAPIV3(sample, "v1", builder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v2, err := builder.BuildOpenAPIV2(sample, "v1", builder.Options{V2: true})
	if err != nil {
		t.Fatal(err)
	}

	type parameter struct {
		Name        string `json:"name"`
		Type        string `json:"type,omitempty"`
		Description string `json:"description,omitempty"`
		Shared      string `json:"shared,omitempty"`
	}
	resolve := func(p spec.Parameter) parameter {
		shared := strings.TrimPrefix(p.Ref.String(), "#/parameters/")
		if shared != "" {
			p = v2.Parameters[shared]
		}
		return parameter{Name: p.Name, Type: p.Type, Description: p.Description, Shared: shared}
	}
	var out struct {
		// Parameters are the query parameters of each x-kubernetes-action.
		Parameters map[string][]parameter `json:"parameters"`
		// Common are the parameters of all actions; "namespace" is in the path.
		Common []parameter `json:"common"`
		// Bodies are the names of body parameters that v2 shares, by definition.
		Bodies map[string]string `json:"bodies"`
		// Schemas are v3 definitions.
		Schemas map[string]*spec.Schema `json:"schemas"`
	}
	out.Parameters, out.Bodies, out.Schemas = map[string][]parameter{}, map[string]string{}, v3.Components.Schemas
	delete(out.Schemas, "com.example.v1.Sample")
	delete(out.Schemas, "com.example.v1.SampleList")
	item := v2.Paths.Paths["/apis/example.com/v1/namespaces/{namespace}/samples/{name}"]
	for _, p := range item.Parameters {
		if p := resolve(p); p.Name != "name" {
			out.Common = append(out.Common, p)
		}
	}
	all := v2.Paths.Paths["/apis/example.com/v1/namespaces/{namespace}/samples"]
	for _, op := range []*spec.Operation{all.Get, all.Post, all.Delete, item.Get, item.Put, item.Patch, item.Delete} {
		action := op.Extensions["x-kubernetes-action"].(string)
		out.Parameters[action] = []parameter{}
		for _, p := range op.Parameters {
			if strings.HasPrefix(p.Ref.String(), "#/parameters/body-") {
				shared := strings.TrimPrefix(p.Ref.String(), "#/parameters/")
				schema := v2.Parameters[shared].Schema
				out.Bodies[strings.TrimPrefix(schema.Ref.String(), "#/definitions/")] = shared
			} else if p.In != "body" {
				out.Parameters[action] = append(out.Parameters[action], resolve(p))
			}
		}
	}
	want, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(models, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(models)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error(
			"internal/api/openapi/models.json is not what Kubernetes publishes: run go test -run TestModels -update")
	}
}
