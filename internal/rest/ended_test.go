package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWorkEndsWithTheRequest sends requests of disconnected clients: the server neither validates them nor computes
// rows. Each request is first sent with a client that waits, to show that there is something to find.
func TestWorkEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	s := start(t)
	send(t, s, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"racks.a.example.com"},"spec":{"group":"a.example.com","scope":"Cluster",
		"names":{"plural":"racks","kind":"Rack"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{
		"units":{"type":"array","items":{"type":"string"}}}}}}]}}`, nil)
	const racks, rack = "/apis/a.example.com/v1/racks", "/apis/a.example.com/v1/racks/one"
	units := func(name, last string) string { // enough for the context to be checked in between
		return fmt.Sprintf(`{"apiVersion":"a.example.com/v1","kind":"Rack","metadata":{"name":%q},"units":[%s%s]}`, name,
			strings.Repeat(`"",`, 5000), last)
	}
	send(t, s, http.MethodPost, racks, units("one", `""`), nil)
	send(t, s, http.MethodPost, all, `{"metadata":{"name":"one"}}`, nil)
	const notString, badLabel = "must be of type string", `{"metadata":{"name":"one","labels":{"a":"-"}}}`
	for _, c := range []struct {
		method, path, body string
		code               int    // for a client that waits
		found              string // in its response
	}{
		{"POST", racks, units("two", "1"), 422, notString},
		{"PATCH", rack, units("one", "1"), 422, notString},
		{"POST", all, strings.Replace(badLabel, "one", "two", 1), 422, "Invalid value"},
		{"PUT", one, badLabel, 422, "Invalid value"},
		{"PATCH", one, badLabel, 422, "Invalid value"},
		{"GET", racks + "?resourceVersion=0", "", 200, `"cells":["one"`},
		{"GET", all + "?resourceVersion=0", "", 200, `"cells":["one"`},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			answer := func(ctx context.Context) *httptest.ResponseRecorder {
				t.Helper()
				if c.method == http.MethodGet {
					return requestIn(ctx, t, s, c.method, c.path, c.body,
						"application/json;as=Table;v=v1;g=meta.k8s.io")
				}
				return requestIn(ctx, t, s, c.method, c.path, c.body)
			}
			if w := answer(t.Context()); w.Code != c.code || !strings.Contains(w.Body.String(), c.found) {
				t.Fatalf("a client that waits got %d %s", w.Code, w.Body)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if w := answer(gone); strings.Contains(w.Body.String(), c.found) {
				t.Errorf("the work was done for a client that had gone: %d %s", w.Code, w.Body)
			}
		})
	}
}
