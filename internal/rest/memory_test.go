package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// account notes charges, and refuses bodies with refuse.
type account struct {
	bodies, held int64
	refuse       error
}

func (a *account) Body(_ int, weight int64) error { a.bodies += weight; return a.refuse }
func (a *account) Hold(weight int64) error        { a.held += weight; return nil }

// charged sends a request that has an account.
func charged(t *testing.T, s *server, a *account, method, path, contentType, body string) int {
	t.Helper()
	ctx := request.NewContext(codec.WithCBOR(t.Context()), &request.Scope{Memory: a})
	return within(ctx, t, s, method, path, contentType, "", body)
}

// TestEveryBodyIsCharged sends bodies to every resource and subresource, with every verb that takes one, in every form.
// The request is charged before the body is decoded: a refusal comes before an error about what is in it.
func TestEveryBodyIsCharged(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	send(t, s, http.MethodPost, "/api/v1/namespaces/default/pods",
		`{"metadata":{"name":"one"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, nil)
	full := apierrors.NewTooManyRequests("full", 1)
	protobuf := string(codec.Enclose("v1", "ConfigMap", []byte(strings.Repeat("\xff", 100))))
	for _, path := range []string{"/api/v1/namespaces/default/pods", "/apis/a.example.com/v1/namespaces/default/widgets",
		"/apis/apps/v1/namespaces/default/deployments",
		"/api/v1/namespaces/default/pods/one/eviction", "/api/v1/namespaces/default/pods/one/binding"} {
		requests := []string{"POST"}
		if !strings.Contains(path, "/one/") {
			requests = append(requests, "PUT /one", "PATCH /one", "DELETE /one")
		}
		if strings.HasSuffix(path, "/pods") || strings.HasSuffix(path, "/deployments") {
			requests = append(requests, "PUT /one/status", "PATCH /one/status")
		}
		for _, do := range requests {
			method, below, _ := strings.Cut(do, " ")
			forms := []string{codec.JSON, codec.YAML, codec.CBOR, codec.Protobuf}
			if method == http.MethodPatch {
				forms = []string{"application/merge-patch+json", "application/json-patch+json",
					"application/apply-patch+yaml", "application/apply-patch+cbor"}
			}
			for _, form := range forms {
				body := "no {document, of any form"
				if form == codec.Protobuf {
					body = protobuf
				}
				target := path + below
				if form == "application/apply-patch+yaml" || form == "application/apply-patch+cbor" {
					target += "?fieldManager=me"
				}
				a := &account{refuse: full}
				code := charged(t, s, a, method, target, form, body)
				if a.bodies == 0 || code != http.StatusTooManyRequests {
					t.Errorf("%s %s in %s: charged %d, status %d", method, target, form, a.bodies, code)
				}
			}
		}
	}
}

// TestStoredObjectsAreCharged patches a large object with a small body.
func TestStoredObjectsAreCharged(t *testing.T) {
	t.Parallel()
	s := start(t)
	const path = "/api/v1/namespaces/default/configmaps"
	var data strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&data, `"k%d":"",`, i)
	}
	a := &account{}
	code := charged(t, s, a, http.MethodPost, path, codec.JSON,
		`{"metadata":{"name":"one"},"data":{`+data.String()+`"x":"y"}}`)
	if code != http.StatusCreated || a.bodies < 5_000*500 || a.held != 0 {
		t.Fatalf("a creation: status %d, charged %d and %d", code, a.bodies, a.held)
	}
	for form, body := range map[string]string{
		"application/merge-patch+json":           `{"data":{"x":"1"}}`,
		"application/strategic-merge-patch+json": `{"data":{"x":"2"}}`,
		"application/json-patch+json":            `[{"op":"add","path":"/data/x","value":"3"}]`,
		"application/apply-patch+yaml":           `{"apiVersion":"v1","kind":"ConfigMap","data":{"z":"4"}}`,
	} {
		a := &account{}
		code := charged(t, s, a, http.MethodPatch, path+"/one?fieldManager=me", form, body)
		if code != http.StatusOK || a.held < 5_000*500 {
			t.Errorf("%s: status %d, charged %d for the stored object", form, code, a.held)
		}
	}
}

// TestReadsAreCharged reads a large object and its list in all forms: each form but plain JSON decodes the object.
func TestReadsAreCharged(t *testing.T) {
	t.Parallel()
	s := start(t)
	const path = "/api/v1/namespaces/default/configmaps"
	var data strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&data, `"k%d":"",`, i)
	}
	send(t, s, http.MethodPost, path, `{"metadata":{"name":"one"},"data":{`+data.String()+`"x":"y"}}`, nil)
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, target := range []string{path + "/one", path} {
		for _, c := range []struct {
			accept, query string
			charged       bool
		}{
			{codec.JSON, "", false},
			{codec.JSON, "?pretty=1", true},
			{codec.YAML, "", true},
			{codec.CBOR, "", true},
			{codec.Protobuf, "", true},
			{table, "", true},
			{table, "?includeObject=Object", true},
			{"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "", true},
			{"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "", true},
		} {
			a := &account{}
			ctx := request.NewContext(codec.WithCBOR(t.Context()), &request.Scope{Memory: a})
			code := within(ctx, t, s, http.MethodGet, target+c.query, "", c.accept, "")
			if code != http.StatusOK && code != http.StatusNotAcceptable || c.charged != (a.held >= 5_000*500) {
				t.Errorf("%s%s as %s: status %d, charged %d", target, c.query, c.accept, code, a.held)
			}
		}
	}
}

// limited refuses bodies like an account of the server.
type limited struct{ account }

func (l *limited) Body(size int, weight int64) error {
	if weight > 64<<20 {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprint(size, " bytes"))
	}
	return l.account.Body(size, weight)
}

// TestTooDeep sends bodies with so many nested lists that no decoder accepts them: the client gets the decoder's error.
// Other bodies with as many elements are too large, even if brackets in a text look like nested lists.
func TestTooDeep(t *testing.T) {
	t.Parallel()
	s := start(t)
	const path = "/api/v1/namespaces/default/configmaps"
	send(t, s, http.MethodPost, path, `{"metadata":{"name":"one"}}`, nil)
	const many = 200_000
	deep := strings.Repeat("[", many) + strings.Repeat("]", many)
	flat := "[" + strings.Repeat("[],", many) + "[]]"
	text := strings.Repeat("[", 10_100)
	for _, c := range []struct {
		method, path, form, body string
		code                     int
	}{
		{"POST", path, codec.JSON, `{"values":` + deep + "}", 400},
		{"POST", path, codec.JSON, `{"values":` + deep, 400},
		{"POST", path, codec.JSON, `{"values":` + flat + "}", 413},
		{"POST", path, codec.JSON, `{"text":"` + text + `","values":` + flat + "}", 413},
		{"POST", path, codec.YAML, "values: " + deep, 400},
		{"POST", path, codec.YAML, "values: " + deep[:many], 400},
		{"POST", path, codec.YAML, "values: " + flat, 413},
		{"POST", path, codec.YAML, "values: " + flat + "\ndeep: " + deep, 413},
		{"POST", path, codec.YAML, "text: |\n  " + text + "\nvalues: " + flat, 413},
		{"POST", path, codec.YAML, "text: '" + text + "'\nvalues: " + flat, 413},
		{"POST", path, codec.YAML, "# " + text + "\nvalues: " + flat, 413},
		{"PATCH", path + "/one", "application/merge-patch+json", `{"values":` + deep + "}", 400},
		{"PATCH", path + "/one", "application/strategic-merge-patch+json", `{"values":` + deep + "}", 400},
		{"PATCH", path + "/one", "application/json-patch+json", `[{"op":"add","path":"/x","value":` + deep + "}]", 400},
		{"PATCH", path + "/one", "application/merge-patch+json", `{"values":` + flat + "}", 413},
		{"PATCH", path + "/one?fieldManager=me", "application/apply-patch+yaml", `{"values":` + deep + "}", 400},
		{"PATCH", path + "/one?fieldManager=me", "application/apply-patch+yaml", `{"values":` + flat + "}", 413},
		{"PATCH", path + "/one?fieldManager=me", "application/apply-patch+yaml", "values: " + deep, 400},
	} {
		ctx := request.NewContext(t.Context(), &request.Scope{Memory: &limited{}})
		if code := within(ctx, t, s, c.method, c.path, c.form, "", c.body); code != c.code {
			t.Errorf("%s in %s of %.40q: status %d, want %d", c.method, c.form, c.body, code, c.code)
		}
	}
}
