package aggregation_test

import (
	"testing"
	"time"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestReplicasServeDifferentVersions runs two servers on one etcd, each with a version that the other one lacks, as
// during an upgrade: both become ready, with the APIServices of their versions.
func TestReplicasServeDifferentVersions(t *testing.T) {
	t.Parallel()
	etcd := parttest.OpenStore(t, store.Config{Etcd: etcdtest.Config(t)})
	replica := func(off string) *cluster {
		return clientOf(t, testserver.Start(t, func(c *bowsprit.Config) {
			c.Ephemeral, c.DataDir = false, t.TempDir()
			c.Etcd.Servers = []string{etcd.ClientURL()}
			c.API.RuntimeConfig = map[string]string{off: "false"}
		}).RESTConfig())
	}
	first := replica("apps/v1")
	first.ready()
	second := replica("batch/v1")
	second.ready()
	second.must("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps", "")
	first.ready() // the other one has not removed this one's registrations
	third := replica("apps/v1")
	third.ready()
	third.must("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.batch", "")
}

// ready waits until the server reports readiness.
func (c *cluster) ready() {
	c.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		code, body := c.do("GET", "/readyz?verbose", "")
		if code == 200 {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			c.Fatalf("%d %s", code, body)
		}
	}
}
