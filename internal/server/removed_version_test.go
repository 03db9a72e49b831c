package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// TestRemovedVersion starts on data with an object in a version that this release has removed: the log reports it, and
// reads fail as in kube-apiserver, until the object is deleted unread.
func TestRemovedVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	groups := func(c *config.Config) {
		c.API.Features = map[string]bool{"GenericWorkload": true}
		c.API.RuntimeConfig = map[string]string{"scheduling.k8s.io/v1beta1": "true"}
	}
	first := startEncrypting(t, dir, "", &logtest.Log{}, groups)
	if _, err := first.host.Store.Create(t.Context(), "podgroups/default/old", []byte(`{"apiVersion":`+
		`"scheduling.k8s.io/v1alpha2","kind":"PodGroup","metadata":{"name":"old","namespace":"default","uid":"u"},`+
		`"spec":{"schedulingPolicy":{"basic":{}}}}`)); err != nil {
		t.Fatal(err)
	}
	first.end(t)

	var log logtest.Log
	second := startEncrypting(t, dir, "", &log, groups)
	const why = `no kind \"PodGroup\" is registered for version \"scheduling.k8s.io/v1alpha2\"`
	if text := log.String(); !strings.Contains(text, "objects in the store cannot be read") ||
		!strings.Contains(text, "objects=1 first=podgroups/default/old") || !strings.Contains(text, why) {
		t.Errorf("log: %s", text)
	}
	const path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
	list := second.do("GET", path, "", http.StatusInternalServerError)
	if list["reason"] != "StorageReadError" {
		t.Errorf("list: %v", list)
	}
	second.do("DELETE", path+"/old", "", http.StatusInternalServerError)
	second.do("DELETE", path+"/old", `{"kind":"DeleteOptions","apiVersion":"v1",`+
		`"ignoreStoreReadErrorWithClusterBreakingPotential":true}`, http.StatusOK)
	if items := second.do("GET", path, "", http.StatusOK)["items"].([]any); len(items) > 0 {
		t.Errorf("after the deletion: %v", items)
	}
}
