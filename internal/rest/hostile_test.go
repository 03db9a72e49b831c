package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/request"
)

// TestBodiesThatAreNoObjects sends bodies that are not objects to every resource and subresource that accepts a body.
// No response may be a panic.
func TestBodiesThatAreNoObjects(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	send(t, s, http.MethodPost, "/api/v1/namespaces/default/pods",
		`{"metadata":{"name":"one"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, nil)
	s.Catalog().Snapshot().Resources(func(res *catalog.Resource) {
		for _, ver := range res.Versions {
			for _, target := range writes(res, ver) {
				for _, body := range []string{"null", "", "[]", "1", `"x"`, "{}", `{"metadata":null,"spec":null}`,
					"---\n", "# nothing\n"} {
					code := hostile(t, s, target, body)
					if code >= 500 && res.Plural != "bindings" { // kube-apiserver returns 500 without a target
						t.Errorf("%s %q: %d", target, body, code)
					}
				}
			}
		}
	})
}

// writes returns the requests with a body to a resource and one of its objects.
func writes(res *catalog.Resource, ver *catalog.Version) []string {
	path := "/apis/" + res.Group + "/" + ver.Name
	if res.Group == "" {
		path = "/api/" + ver.Name
	}
	if res.Namespaced {
		path += "/namespaces/default"
	}
	path += "/" + res.Plural
	targets := []string{"POST " + path, "PUT " + path + "/one", "MERGE " + path + "/one", "JSON " + path + "/one",
		"APPLY " + path + "/one?fieldManager=me"}
	for _, sub := range append(res.Subresources, catalog.Subresource{Name: "status"},
		catalog.Subresource{Name: "scale"}) {
		below := path + "/one/" + sub.Name
		targets = append(targets, "POST "+below, "PUT "+below, "MERGE "+below)
	}
	return append(targets, "DELETE "+path+"/one", "DELETE "+path)
}

// hostile sends a body, also as YAML, and returns the greater code.
func hostile(t *testing.T, s *server, do, body string) int {
	t.Helper()
	verb, path, _ := strings.Cut(do, " ")
	method, types := verb, []string{"application/json", "application/yaml"}
	if patch := map[string]string{
		"MERGE": "application/merge-patch+json", "JSON": "application/json-patch+json",
		"APPLY": "application/apply-patch+yaml",
	}[verb]; patch != "" {
		method, types = http.MethodPatch, []string{patch}
	}
	code := 0
	for _, contentType := range types {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		info, err := request.Parse(r)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if cause := recover(); cause != nil {
					t.Errorf("%s %q (%s): panic: %v", do, body, contentType, cause)
				}
			}()
			s.ServeHTTP(w, r, info, admin)
		}()
		code = max(code, w.Code)
	}
	return code
}

// TestNullBodies: null is an object of the endpoint's kind without any field, as in kube-apiserver.
func TestNullBodies(t *testing.T) {
	t.Parallel()
	run(t, start(t), []step{
		{
			do: "POST " + all, body: "null", code: 422,
			holds: map[string]string{
				"reason":  "Invalid",
				"message": "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
			},
		},
		{
			do: "PUT " + one, body: "null", code: 400,
			holds: map[string]string{
				"message": "the name of the object (one based on URL) was undeterminable: name must be provided",
			},
		},
	})
}

// TestMethodsOfWatchPaths: the old form of a watch can be read only.
func TestMethodsOfWatchPaths(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	for _, path := range []string{"/api/v1/watch/namespaces/default/pods", "/api/v1/watch/pods",
		"/api/v1/watch/namespaces/default/pods/one", "/apis/a.example.com/v1/watch/namespaces/default/widgets"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if w := ask(t, s, method, path+"?timeoutSeconds=1", `{}`); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
		if w := ask(t, s, http.MethodGet, path+"?timeoutSeconds=1&resourceVersion=0", ""); w.Code != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
}
