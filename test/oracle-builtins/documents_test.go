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

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
)

// TestPublishedDocuments compares the rest of the documents: paths without objects, the groups with options and events
// in v2, and the authentication of clients.
func TestPublishedDocuments(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	cat := catalog.New(everything()...)
	handler := openapi.New(openapi.Options{
		Version:    "unversioned",
		WriteError: func(w http.ResponseWriter, _ *http.Request, err error) { http.Error(w, err.Error(), 500) },
	})
	ours := func(path string) (doc map[string]any) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil),
			cat.Snapshot())
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
			t.Fatalf("%s: %v: %.200s", path, err, w.Body)
		}
		return doc
	}
	theirs := func(name string) (doc map[string]any) {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "api/openapi-spec", name))
		if err == nil {
			err = json.Unmarshal(data, &doc)
		}
		if err != nil {
			t.Fatal(err)
		}
		dropCBOR(doc)
		return doc
	}
	compared := 0
	for name := range ours("/openapi/v3")["paths"].(map[string]any) {
		if name == "apis/apiextensions.k8s.io/v1beta1" { // no longer served by Kubernetes
			continue
		}
		our, their := ours("/openapi/v3/"+name), theirs("v3/"+strings.ReplaceAll(name, "/", "__")+"_openapi.json")
		if parts := strings.Split(name, "/"); len(parts) == 3 && parts[0] == "apis" || name == "api/v1" {
			ourParts, theirParts := our["components"].(map[string]any), their["components"].(map[string]any)
			if !reflect.DeepEqual(ourParts["securitySchemes"], theirParts["securitySchemes"]) ||
				!reflect.DeepEqual(our["info"], their["info"]) {
				t.Errorf("%s: %v, %v", name, ourParts["securitySchemes"], our["info"])
			}
			continue // the rest is compared by TestPublishedPaths and TestPublishedSchemas
		}
		compared++
		if !reflect.DeepEqual(our, their) {
			t.Errorf("%s: %v", name, difference("", our, their))
		}
	}
	if compared < 20 {
		t.Errorf("only %d documents compared", compared)
	}
	ourV2, theirV2 := ours("/openapi/v2"), theirs("swagger.json")
	for _, member := range []string{"swagger", "info", "security", "securityDefinitions"} {
		if !reflect.DeepEqual(ourV2[member], theirV2[member]) {
			t.Errorf("v2: %s is %v, want %v", member, ourV2[member], theirV2[member])
		}
	}
	for path, our := range ourV2["paths"].(map[string]any) {
		if strings.Count(path, "/") > 3 || strings.HasPrefix(path, "/api/v1/") {
			continue // TestPublishedPaths
		}
		if their := theirV2["paths"].(map[string]any)[path]; !reflect.DeepEqual(our, their) {
			t.Errorf("v2: %s: %v", path, our)
		}
	}
	for name, our := range ourV2["definitions"].(map[string]any) {
		if !strings.HasPrefix(name, "io.k8s.apimachinery.") {
			continue
		}
		if their := theirV2["definitions"].(map[string]any)[name]; !reflect.DeepEqual(our, their) {
			t.Errorf("v2: %s: %v", name, difference("", our.(map[string]any), their.(map[string]any)))
		}
	}
}
