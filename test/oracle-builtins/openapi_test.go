package oraclebuiltins

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	generated "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestPublishedSchemas compares the definitions of every published group version with the files in k8s.io/kubernetes'
// api/openapi-spec. The files lack enums, which servers publish: the values of enums and their descriptions are
// compared with the generated code.
func TestPublishedSchemas(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	generated := generated.GetOpenAPIDefinitions(func(string) spec.Ref { return spec.Ref{} })
	cat := catalog.New(everything()...)
	handler := openapi.New(openapi.Options{
		WriteError: func(w http.ResponseWriter, _ *http.Request, err error) { http.Error(w, err.Error(), 500) },
	})
	compared, enums := 0, 0
	for _, g := range cat.Snapshot().Groups() {
		for _, v := range g.Versions {
			at, file := "apis/"+g.Name+"/"+v.Name, "apis__"+g.Name+"__"+v.Name
			if at == "apis/apiextensions.k8s.io/v1beta1" {
				continue // no longer served by Kubernetes
			}
			if g.Name == "" {
				at, file = "api/"+v.Name, "api__"+v.Name
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w,
				httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/openapi/v3/"+at, nil),
				cat.Snapshot())
			ours := definitionsOf(t, w.Body.Bytes())
			data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "api/openapi-spec/v3", file+
				"_openapi.json"))
			if err != nil {
				t.Fatal(err)
			}
			theirs := definitionsOf(t, data)
			for name, our := range ours {
				their := theirs[name]
				compared++
				enums += takeEnums(t, at+": "+name, our, generated[name].Schema)
				if !reflect.DeepEqual(our, their) {
					t.Errorf("%s: %s: %v", at, name, difference("", our, their))
				}
			}
		}
	}
	if compared < 1000 || enums < 100 {
		t.Errorf("only %d definitions and %d enums compared", compared, enums)
	}
}

// everything returns all kinds in all their versions, including versions that are off by default, with all feature
// gates.
func everything() []*catalog.Resource {
	resources := kinds.Resources()
	if _, err := (kinds.RuntimeConfig{"api/all": "true"}).Apply(resources, kinds.Emulation{},
		"ClusterTrustBundle", "PodCertificateRequest", "GenericWorkload", "StorageVersionMigrator"); err != nil {
		panic(err) // the configuration is valid
	}
	return resources
}

// takeEnums removes the enums from a published definition, compares them with the generated one and returns their
// number.
func takeEnums(t *testing.T, at string, our map[string]any, their spec.Schema) int {
	properties, _ := our["properties"].(map[string]any)
	found := 0
	for name, p := range properties {
		p, their := p.(map[string]any), their.Properties[name]
		description, enum, _ := strings.Cut(their.Description, "Possible enum values:")
		if got, _ := p["description"].(string); got != their.Description {
			t.Errorf("%s.%s: description %q, want %q", at, name, got, their.Description)
		} else if enum != "" {
			p["description"] = strings.TrimSpace(description)
		}
		wants := [][]any{their.Enum, nil, nil}
		inner := []map[string]any{p, nil, nil}
		if their.Items != nil {
			wants[1] = their.Items.Schema.Enum
			inner[1], _ = p["items"].(map[string]any)
		}
		if their.AdditionalProperties != nil {
			wants[2] = their.AdditionalProperties.Schema.Enum
			inner[2], _ = p["additionalProperties"].(map[string]any)
		}
		for i, want := range wants {
			got, _ := inner[i]["enum"].([]any)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s.%s: enum %v, want %v", at, name, got, want)
			}
			if got != nil {
				found++
			}
			delete(inner[i], "enum")
		}
	}
	return found
}

func definitionsOf(t *testing.T, doc []byte) map[string]map[string]any {
	t.Helper()
	var d struct {
		Components struct{ Schemas map[string]map[string]any }
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatalf("%v: %.200s", err, doc)
	}
	return d.Components.Schemas
}
