package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/testserver"
)

// serve serves the ships of a database file until the test ends.
func serve(t *testing.T, file string) (*testserver.Server, dynamic.ResourceInterface) {
	t.Helper()
	s, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	served, err := extension.In(kinds(s)...)
	if err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, func(c *bowsprit.Config) { c.Extensions = append(c.Extensions, served) })
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return server, client.Resource(schema.GroupVersionResource{
		Group: "sea.example.com", Version: "v1", Resource: "ships",
	}).Namespace("default")
}

// TestSQL writes objects and reads them as rows, and writes rows and reads them as objects; both survive a restart.
func TestSQL(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ships.db")
	server, ships := serve(t, file)
	made, err := ships.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Ship",
		"metadata": map[string]any{"name": "pequod", "labels": map[string]any{"sea": "pacific"}},
		"spec":     map[string]any{"captain": "Ahab"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(file) // another program
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var captain string
	var masts int
	row := other.db.QueryRow("SELECT captain, masts FROM ships WHERE name = 'pequod'")
	if err := row.Scan(&captain, &masts); err != nil || captain != "Ahab" || masts != 3 {
		t.Errorf("the row says %q, %d, %v", captain, masts, err)
	}
	if _, err := other.db.Exec(`UPDATE ships SET captain = 'Starbuck' WHERE name = 'pequod';
		INSERT INTO ships (namespace, name, captain) VALUES ('default', 'nautilus', 'Nemo')`); err != nil {
		t.Fatal(err)
	}
	has(t, ships, "nautilus", "Nemo")
	now := has(t, ships, "pequod", "Starbuck")
	if now.GetUID() != made.GetUID() || now.GetLabels()["sea"] != "pacific" {
		t.Errorf("made %v, now %v", made, now)
	}
	if _, err := ships.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a write of what another program has changed: %v", err)
	}
	for _, masts := range []string{"4", "5"} { // the server knows the version of a row that it has written
		if _, err := ships.Patch(t.Context(), "pequod", types.MergePatchType, []byte(`{"spec":{"masts":`+masts+`}}`),
			metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	_, ships = serve(t, file)
	if again := has(t, ships, "pequod", "Starbuck"); again.GetUID() != made.GetUID() {
		t.Errorf("after the restart %v", again)
	}
	if err := ships.Delete(t.Context(), "pequod", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var rows int
	row = other.db.QueryRow("SELECT count(*) FROM ships WHERE name = 'pequod'")
	if err := row.Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// has waits until a ship has a captain.
func has(t *testing.T, ships dynamic.ResourceInterface, name, captain string) (obj *unstructured.Unstructured) {
	t.Helper()
	var got string
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			var err error
			obj, err = ships.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if err == nil {
				got, _, _ = unstructured.NestedString(obj.Object, "spec", "captain")
			}
			return got == captain, err
		})
	if err != nil {
		t.Fatalf("%s has the captain %q: %v", name, got, err)
	}
	return obj
}
