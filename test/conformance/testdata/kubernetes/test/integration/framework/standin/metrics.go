package standin

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/invariants/metrics"
)

// CheckMetrics fails the test if a metric of the server has a value that Kubernetes' own test server refuses.
func CheckMetrics(t interface{ Errorf(string, ...any) }, client kubernetes.Interface) {
	if err := metrics.CheckMetricInvariants(context.Background(), client, false); err != nil {
		t.Errorf("a metric of the server is not as it must be: %v", err)
	}
}
