package operators

import "testing"

// TestJobSet runs JobSet's own end-to-end tests, which wait for its Deployment to be available, for pods to be ready
// and for Jobs to complete.
func TestJobSet(t *testing.T) {
	t.Parallel()
	ctx, s := bounded(t), start(t, "--simulate=nodes=3")
	s.create(ctx, t, jobDurations)
	managed{name: "jobset", module: "sigs.k8s.io/jobset", options: "config.jobset.x-k8s.io/v1alpha1"}.install(ctx, t, s)
	s.suite(t, "jobset-suite", t.TempDir(), "-ginkgo.no-color", "-ginkgo.timeout=8m")
}
