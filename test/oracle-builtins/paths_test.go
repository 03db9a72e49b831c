package oraclebuiltins

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
)

// TestPublishedPaths compares the operations of every published group version with the files in k8s.io/kubernetes'
// api/openapi-spec: paths, methods, names, actions, kinds, parameters, bodies, responses and their formats.
func TestPublishedPaths(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	cat := catalog.New(everything()...)
	handler := openapi.New(openapi.Options{
		WriteError: func(w http.ResponseWriter, _ *http.Request, err error) { http.Error(w, err.Error(), 500) },
	})
	read := func(name string) map[string]string {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "api/openapi-spec", name))
		if err != nil {
			t.Fatal(err)
		}
		return operationsOf(t, data)
	}
	serve := func(path string) map[string]string {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil),
			cat.Snapshot())
		return operationsOf(t, w.Body.Bytes())
	}
	v2, theirV2 := serve("/openapi/v2"), read("swagger.json")
	compared := 0
	for _, g := range cat.Snapshot().Groups() {
		for _, v := range g.Versions {
			at, file := "apis/"+g.Name+"/"+v.Name, "apis__"+g.Name+"__"+v.Name
			if at == "apis/apiextensions.k8s.io/v1beta1" {
				continue // no longer served by Kubernetes
			}
			if g.Name == "" {
				at, file = "api/"+v.Name, "api__"+v.Name
			}
			compared += compareOperations(t, "v3", serve("/openapi/v3/"+at), read("v3/"+file+"_openapi.json"), "/"+at+
				"/")
			compareOperations(t, "v2", v2, theirV2, "/"+at+"/")
		}
	}
	if compared < 900 {
		t.Errorf("only %d operations compared", compared)
	}
}

// compareOperations compares operations below root, and returns their number.
func compareOperations(t *testing.T, edition string, ours, theirs map[string]string, root string) (n int) {
	t.Helper()
	for _, op := range slices.Sorted(maps.Keys(theirs)) {
		// kinds that Bowsprit lacks
		if !strings.HasPrefix(op, root) || strings.Contains(op, "/resourcepoolstatusrequests") ||
			strings.Contains(op, "/compositepodgroups") {
			continue
		}
		n++
		switch our, ok := ours[op]; {
		case !ok:
			t.Errorf("%s: %s is not there: %s", edition, op, theirs[op])
		case our != theirs[op]:
			t.Errorf("%s: %s:\n got %s\nwant %s", edition, op, our, theirs[op])
		}
	}
	for _, op := range slices.Sorted(maps.Keys(ours)) {
		if _, ok := theirs[op]; !ok && strings.HasPrefix(op, root) {
			t.Errorf("%s: %s is too much: %s", edition, op, ours[op])
		}
	}
	return n
}

// operationsOf returns the compared parts of each operation of a document, by "path method". The published documents
// come from a server with CBOR, which is off by default.
func operationsOf(t *testing.T, data []byte) map[string]string {
	t.Helper()
	var doc struct {
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Parameters map[string]json.RawMessage            `json:"parameters"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	type parameter struct {
		Name   string `json:"name"`
		In     string `json:"in"`
		Ref    string `json:"$ref"`
		Schema struct {
			Ref  string `json:"$ref"`
			Type string `json:"type"`
		} `json:"schema"`
		Type        string `json:"type"`
		Required    bool   `json:"required"`
		Description string `json:"description"`
	}
	shared := map[string]parameter{}
	for name, raw := range doc.Parameters {
		var p parameter
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		shared[name] = p
	}
	describe := func(raw json.RawMessage) string {
		var ps []parameter
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &ps); err != nil {
				t.Fatal(err)
			}
		}
		var out []string
		for _, p := range ps {
			if name, ok := strings.CutPrefix(p.Ref, "#/parameters/"); ok {
				if p, ok = shared[name]; !ok {
					t.Fatalf("no parameter %s", name)
				}
			}
			out = append(out,
				fmt.Sprint(p.Name, " ", p.In, p.Schema.Ref, p.Schema.Type, p.Type, p.Required, p.Description))
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	out := map[string]string{}
	for path, item := range doc.Paths {
		for method, raw := range item {
			if method == "parameters" {
				continue
			}
			var op struct {
				ID          string          `json:"operationId"`
				Action      string          `json:"x-kubernetes-action"`
				Kind        json.RawMessage `json:"x-kubernetes-group-version-kind"`
				Description string          `json:"description"`
				Tags        []string        `json:"tags"`
				Consumes    []string        `json:"consumes"`
				Produces    []string        `json:"produces"`
				Parameters  json.RawMessage `json:"parameters"`
				Body        json.RawMessage `json:"requestBody"`
				Responses   json.RawMessage `json:"responses"`
			}
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			out[path+" "+method] = fmt.Sprintf("%s | %s | %s | %s | %s | of the path: %s | %s | %s | %s | %s | %s",
				op.ID, op.Action, canonical(t, op.Kind), op.Description, op.Tags,
				describe(item["parameters"]), describe(op.Parameters), withoutCBOR(op.Consumes),
				withoutCBOR(op.Produces), canonical(t, op.Body), canonical(t, op.Responses))
		}
	}
	return out
}

func withoutCBOR(forms []string) []string {
	return slices.DeleteFunc(forms, func(f string) bool { return strings.Contains(f, "cbor") })
}

// dropCBOR removes forms from the contents of bodies and answers.
func dropCBOR(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	for key, e := range m {
		if strings.Contains(key, "cbor") {
			delete(m, key)
		}
		if list, ok := e.([]any); ok {
			m[key] = slices.DeleteFunc(list, func(v any) bool { return v == "application/cbor" })
		}
		dropCBOR(e)
	}
}

// canonical is JSON with sorted keys.
func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	if len(raw) == 0 {
		return ""
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	dropCBOR(v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
