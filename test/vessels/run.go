package vessels

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Run runs the table against the server of config.
func Run(t *testing.T, config *rest.Config) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	for _, one := range []struct {
		name string
		test func(*client)
	}{
		{"create", testCreate},
		{"validation", testValidation},
		{"update", testUpdate},
		{"patch", testPatch},
		{"apply", testApply},
		{"status", testStatus},
		{"scale", testScale},
		{"selectors", testSelectors},
		{"pages", testPages},
		{"table", testTable},
		{"watch", testWatch},
		{"dry run", testDryRun},
		{"deletion", testDeletion},
		{"path", testPath},
		{"namespaces", testNamespaces},
		{"discovery", testDiscovery},
		{"openapi", testOpenAPI},
		{"access", testAccess},
	} {
		t.Run(one.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			one.test(newClient(ctx, t, config))
		})
	}
}
