package rest_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestUpdateOfOldClaim writes and patches a claim stored by an older server, before dataSourceRef existed.
func TestUpdateOfOldClaim(t *testing.T) {
	t.Parallel()
	s := start(t)
	const path = "/api/v1/namespaces/default/persistentvolumeclaims/a"
	// The finalizer spares the test a controller.
	const old = `{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u","creationTimestamp":"2020-01-01T00:00:00Z","finalizers":["kubernetes.io/pvc-protection"]},` +
		`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"10G"}},"dataSource":{"apiGroup":null,"kind":"PersistentVolumeClaim","name":"foo"}},"status":{}}`
	if _, err := s.store.Create(t.Context(), "persistentvolumeclaims/default/a", []byte(old)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.View().Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	send(t, s, http.MethodPut, path+"?dryRun=All", old, nil)
	send(t, s, http.MethodPatch, path+"?dryRun=All", `{}`, nil)
	w := ask(t, s, http.MethodGet, path, "")
	send(t, s, http.MethodPut, path+"?dryRun=All", w.Body.String(), nil)
	const other = `"dataSource":{"kind":"PersistentVolumeClaim","name":"bar"}`
	if w := ask(t, s, http.MethodPatch, path, `{"spec":{`+other+`}}`); w.Code != http.StatusUnprocessableEntity ||
		!strings.Contains(w.Body.String(), "spec is immutable after creation") {
		t.Errorf("another source: %d %s", w.Code, w.Body)
	}
	send(t, s, http.MethodPatch, path, `{"metadata":{"labels":{"x":"y"}}}`, nil) // from now on it has both fields
	if w := ask(t, s, http.MethodGet, path, ""); !strings.Contains(w.Body.String(),
		`"dataSourceRef":{"apiGroup":null,"kind":"PersistentVolumeClaim","name":"foo"}`) {
		t.Errorf("after a change: %s", w.Body)
	}
}
