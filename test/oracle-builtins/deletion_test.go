package oraclebuiltins

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestAnswersOfDeletions compares the kinds that answer a deletion with the deleted object with k8s.io/kubernetes.
// There the kind implements an interface, and the published document has the type of the response.
func TestAnswersOfDeletions(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "api/openapi-spec/swagger.json"))
	if err != nil {
		t.Fatal(err)
	}
	var published struct {
		Paths map[string]struct {
			Delete struct {
				Responses map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					} `json:"schema"`
				} `json:"responses"`
			} `json:"delete"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(data, &published); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, r := range kinds.Resources() {
		for _, v := range r.Versions {
			path := "/apis/" + r.Group + "/" + v.Name
			if r.Group == "" {
				path = "/api/" + v.Name
			}
			if r.Namespaced {
				path += "/namespaces/{namespace}"
			}
			answer := published.Paths[path+"/"+r.Plural+"/{name}"].Delete.Responses["200"].Schema.Ref
			if answer == "" || r.IsNamespace() {
				// not deleted by name, or not served by Kubernetes; for a namespace the document is wrong
				continue
			}
			compared++
			if want := !strings.HasSuffix(answer, ".meta.v1.Status"); v.ReturnsDeleted != want {
				t.Errorf("%s/%s: answers the object: %v, want %v (%s)", v.Name, r.Qualified(), v.ReturnsDeleted, want,
					answer)
			}
		}
	}
	if compared < 50 {
		t.Errorf("only %d kinds compared", compared)
	}
}
