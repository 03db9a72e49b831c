package operators

import "testing"

// TestJobSet runs the end-to-end tests of JobSet's authors, which wait for its Deployment to be available, for pods to
// be ready and for Jobs to be done.
func TestJobSet(t *testing.T) {
	t.Parallel()
	ctx, s := bounded(t), start(t, "--simulate=nodes=3")
	s.create(ctx, t, asked)
	managed{name: "jobset", module: "sigs.k8s.io/jobset", options: "config.jobset.x-k8s.io/v1alpha1"}.install(ctx, t, s)
	s.suite(t, "jobset-suite", t.TempDir(), "-ginkgo.no-color", "-ginkgo.timeout=8m")
}
