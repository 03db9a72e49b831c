package quota_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

var quotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

func (c *cluster) limit(name string, hard map[string]any) {
	c.Helper()
	q := controltest.Object("v1", "ResourceQuota", "default", name)
	q.Object["spec"] = map[string]any{"hard": hard}
	c.Create(quotas, q)
}

// used waits until a quota has the given usage, as sorted "name=number" separated by spaces.
func (c *cluster) used(name, want string) {
	c.Helper()
	c.When(quotas, "default", "used "+want, func(objects map[string]*unstructured.Unstructured) bool {
		if objects[name] == nil {
			return false
		}
		used, _, _ := unstructured.NestedStringMap(objects[name].Object, "status", "used")
		for _, pair := range strings.Fields(want) {
			key, n, _ := strings.Cut(pair, "=")
			if used[key] != n {
				return false
			}
		}
		return len(used) == len(strings.Fields(want))
	})
}

func TestQuota(t *testing.T) {
	c := start(t)
	c.Create(controltest.Definitions, controltest.Definition("crontabs", "CronTab", "Namespaced"))
	tab := func(name string) *unstructured.Unstructured {
		return controltest.Object("stable.example.com/v1", "CronTab", "default", name)
	}
	c.Create(controltest.Crontabs, tab("before"))
	c.limit("tabs", map[string]any{"count/crontabs.stable.example.com": "2", "secrets": "1", "requests.cpu": "4"})
	c.used("tabs", "count/crontabs.stable.example.com=1 secrets=0 requests.cpu=0")
	if _, err := c.In(controltest.Crontabs, "default").Create(t.Context(), tab("dry"),
		metav1.CreateOptions{DryRun: []string{"All"}}); err != nil {
		t.Error(err)
	}
	c.Create(controltest.Crontabs, tab("second"))
	c.used("tabs", "count/crontabs.stable.example.com=2 secrets=0 requests.cpu=0")
	_, err := c.In(controltest.Crontabs, "default").Create(t.Context(), tab("third"), metav1.CreateOptions{})
	want := `crontabs.stable.example.com "third" is forbidden: exceeded quota: tabs, requested: count/crontabs.stable.example.com=1, used: count/crontabs.stable.example.com=2, limited: count/crontabs.stable.example.com=2`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("one too many: %v", err)
	}
	c.Delete(controltest.Crontabs, tab("before"), "")
	c.used("tabs", "count/crontabs.stable.example.com=1 secrets=0 requests.cpu=0")
	c.Create(controltest.Crontabs, tab("third"))
	c.Create(controltest.Secrets, controltest.Secret("s"))
	if _, err := c.In(controltest.Secrets, "default").Create(t.Context(), controltest.Secret("t"),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a second secret: %v", err)
	}
	patch := []byte(`{"spec":{"hard":{"secrets":"2","configmaps":"10"}}}`)
	if _, err := c.In(quotas, "default").Patch(t.Context(), "tabs", "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.UntilMine(controltest.ConfigMaps, "default", "")
	c.used("tabs", "count/crontabs.stable.example.com=2 secrets=1 configmaps=1 requests.cpu=0") // kube-root-ca.crt
	c.Create(controltest.Secrets, controltest.Secret("t"))
}

// TestQuotaIsNotOvershot has many concurrent writers contend for the last places.
func TestQuotaIsNotOvershot(t *testing.T) {
	c := start(t)
	c.limit("a", map[string]any{"count/secrets": "20"})
	c.limit("b", map[string]any{"secrets": "15"})
	c.used("a", "count/secrets=0")
	c.used("b", "secrets=0")
	var made atomic.Int64
	var wg sync.WaitGroup
	for w := range 10 {
		wg.Go(func() {
			for i := range 5 {
				_, err := c.In(controltest.Secrets, "default").Create(t.Context(),
					controltest.Secret(fmt.Sprintf("s-%d-%d", w, i)), metav1.CreateOptions{})
				if err == nil {
					made.Add(1)
				} else if !apierrors.IsForbidden(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if made.Load() != 15 {
		t.Errorf("%d secrets were made, want 15", made.Load())
	}
	c.used("a", "count/secrets=15")
	c.used("b", "secrets=15")
}

// TestUsageBesideController runs another program as quota controller, which does not count on creations: the server
// does, and ignores quotas that the controller has not counted yet.
func TestUsageBesideController(t *testing.T) {
	c := &cluster{controltest.Start(t, func(config *bowsprit.Config) {
		config.Controllers.Enabled = []string{"-resourcequota-controller", "*"}
	})}
	c.limit("secrets", map[string]any{"secrets": "3"})
	q, err := c.In(quotas, "default").Get(t.Context(), "secrets", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status := map[string]any{"hard": map[string]any{"secrets": "3"}, "used": map[string]any{"secrets": "0"}}
	q.Object["status"] = status
	if _, err := c.In(quotas, "default").UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Create(controltest.Secrets, controltest.Secret("first"))
	c.used("secrets", "secrets=1")
	c.Create(controltest.Secrets, controltest.Secret("second"))
	c.used("secrets", "secrets=2")
}
