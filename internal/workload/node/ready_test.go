package node_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/testserver"
)

// leases is the resource of the Lease that servers compete for.
var leases = ref.Leases.GroupResource()

// TestReadiness checks that a server with an etcd of its own is ready for its simulation at once. Servers that share an
// etcd are not ready until the Lease has a working holder; an inactive holder does not count.
func TestReadiness(t *testing.T) {
	t.Parallel()
	alone := testserver.Start(t, testserver.WithWorkloads())
	if code, text := ask(t, alone, "/readyz?verbose"); code != http.StatusOK ||
		!strings.Contains(text, "[+]simulation ok") {
		t.Errorf("a server alone: %d %s", code, text)
	}
	if _, text := ask(t, testserver.Start(t), "/readyz?verbose"); strings.Contains(text, "simulation") {
		t.Errorf("a server that simulates nothing: %s", text)
	}

	st := parttest.OpenStore(t, store.Config{Etcd: etcdtest.Config(t)})
	other := parttest.Start(t, st) // writes as another server would
	other.Create(leases, "kube-system", `{"metadata":{"name":"bowsprit-controllers","namespace":"kube-system"},
		"spec":{"holderIdentity":"gone","leaseDurationSeconds":3600}}`)
	var servers []*testserver.Server
	for range 2 {
		servers = append(servers, testserver.Start(t, testserver.WithWorkloads(), func(c *bowsprit.Config) {
			c.Ephemeral, c.DataDir, c.Etcd.Servers = false, t.TempDir(), []string{st.ClientURL()}
		}))
	}
	for _, s := range servers {
		if code, text := ask(t, s, "/readyz"); code != http.StatusInternalServerError {
			t.Errorf("before any server works: %d %s", code, text)
		}
		if code, text := ask(t, s, "/readyz/simulation"); !strings.Contains(text, "no server leads the controllers yet") {
			t.Errorf("before any server works: %d %s", code, text)
		}
		if code, text := ask(t, s, "/livez"); code != http.StatusOK {
			t.Errorf("it is alive all the same: %d %s", code, text)
		}
	}
	lease := func(holder string) {
		t.Helper()
		_, err := other.Verbs.Update(t.Context(), other.Call(leases, "kube-system", "bowsprit-controllers"),
			metav1.UpdateOptions{}, func(obj object.Object) (object.Object, error) {
				spec := object.Child(obj, "spec")
				spec["holderIdentity"], spec["renewTime"] = holder, time.Now().UTC().Format(metav1.RFC3339Micro)
				return obj, nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range servers { // the holder is active after all
		until(t, s, func() { lease("gone") })
	}
	lease("")
	for _, s := range servers { // one of them acquires it
		until(t, s, func() {})
	}
}

// until waits for a server to be ready; before each look it calls f.
func until(t *testing.T, s *testserver.Server, f func()) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), controltest.Patience)
	defer cancel()
	for {
		f()
		code, text := ask(t, s, "/readyz")
		if code == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not ready: %s", text)
		}
	}
}

// ask returns the status and the text of a page.
func ask(t *testing.T, s *testserver.Server, path string) (int, string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	code := 0
	text, err := client.RESTClient().Get().RequestURI(path).Do(t.Context()).StatusCode(&code).Raw()
	if code == 0 {
		t.Fatal(err)
	}
	return code, string(text)
}
