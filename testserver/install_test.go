package testserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit/testserver"
)

const (
	operatorCRDs     = "testdata/operator/crd"
	operatorWebhooks = "testdata/operator/webhook"
	operatorObjects  = "testdata/operator/objects"
)

// TestInstall installs definitions, a namespace and objects, which are in an order that fails without sorting.
func TestInstall(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	for range 2 { // a second time changes nothing
		if err := server.Install(t.Context(), operatorObjects, operatorCRDs); err != nil {
			t.Fatal(err)
		}
	}
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(backups).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range list.Items {
		keep, _, _ := unstructured.NestedInt64(o.Object, "spec", "keep")
		got = append(got, o.GetNamespace()+"/"+o.GetName())
		if o.GetName() == "weekly" && keep != 52 {
			t.Errorf("weekly keeps %d", keep)
		}
	}
	if strings.Join(got, " ") != "default/weekly team/nightly" {
		t.Errorf("installed %q", got)
	}
}

// TestInstallErrors checks that each unreadable file and each refused object is reported with its file.
func TestInstallErrors(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	dir := t.TempDir()
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"twice.yaml", "kind: ConfigMap\nkind: ConfigMap\n", []string{"twice.yaml: document 1: ", "already"}},
		{"values.yaml", "replicas: 3\n", []string{"values.yaml: document 1: ", "no apiVersion or no kind"}},
		{"tab.yaml", "a: b\n---\n\tc\n", []string{"tab.yaml: document 1: ", "document 2"}},
		{"kind.yaml", "apiVersion: none.example.com/v1\nkind: None\nmetadata: {name: a}\n",
			[]string{"kind.yaml: None a: ", `no matches for kind "None"`}},
		{"invalid.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"Upper"}}`,
			[]string{"invalid.json: ConfigMap Upper: ", "Invalid value"}},
		{"two.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A}\n---\n" +
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: B}\n", []string{"ConfigMap A: ", "ConfigMap B: "}},
	} {
		file := filepath.Join(dir, test.name)
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := server.Install(t.Context(), file)
		for _, want := range test.want {
			if test.name == "tab.yaml" && want == "document 2" {
				continue // the first document is refused before
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", test.name, err, want)
			}
		}
	}
	for _, paths := range [][]string{nil, {filepath.Join(dir, "missing")}, {t.TempDir()}} {
		if err := server.Install(t.Context(), paths...); err == nil {
			t.Errorf("%q: no error", paths)
		}
	}
}
