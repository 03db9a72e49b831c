package demo

import (
	"bytes"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit/testserver"
)

// run is the command as a user calls it.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestDemo(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	config := "--kubeconfig=" + server.Kubeconfig()
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	crons := client.Resource(schema.GroupVersionResource{Group: "stable.example.com", Version: "v1",
		Resource: "crontabs"})
	for _, want := range []string{
		"demo: 5 created, 0 changed, 0 unchanged", "demo: 0 created, 0 changed, 5 unchanged",
	} {
		out, err := run(t, config)
		if err != nil || !strings.Contains(out, want) || !strings.Contains(out, "  bowsprit kubectl "+config+
			" -n demo get crontabs\n") {
			t.Errorf("%v, want %q:\n%s", err, want, out)
		}
	}
	list, err := crons.Namespace("demo").List(t.Context(), metav1.ListOptions{LabelSelector: "team"})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("%v %v", list, err)
	}
	if out, err := run(t, config, "--remove"); err != nil || strings.Count(out, "is deleted") != 2 {
		t.Errorf("%v: %s", err, out)
	}
	for err = nil; err == nil; { // the server removes the definition after its objects
		_, err = crons.Namespace("demo").List(t.Context(), metav1.ListOptions{})
	}
	if !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// TestDemoWithoutServer checks that --print prints the objects that would be applied, and that without a server the
// error gives a remedy.
func TestDemoWithoutServer(t *testing.T) {
	t.Parallel()
	out, err := run(t, "--print")
	if err != nil || out != manifests {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := run(t, "--data-dir="+t.TempDir()); err == nil || !strings.Contains(err.Error(), "bowsprit serve") {
		t.Error(err)
	}
	if _, err := run(t, "extra"); err == nil {
		t.Error("an argument was taken")
	}
}
