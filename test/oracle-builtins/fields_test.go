package oraclebuiltins

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestFieldLabels checks that field selectors support the same fields as Kubernetes, for every kind.
func TestFieldLabels(t *testing.T) {
	t.Parallel()
	candidates := []string{
		"name", "type", "reason", "source", "reportingComponent", "reportingController", "involvedObject.kind",
		"involvedObject.namespace", "involvedObject.name",
		"involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
		"regarding.kind", "regarding.namespace",
		"regarding.name", "regarding.uid", "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
		"spec.nodeName", "spec.host",
		"spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "spec.unschedulable",
		"spec.clusterIP", "spec.type",
		"spec.signerName", "spec.podName", "spec.driver", "spec.leaseName", "status.phase", "status.podIP",
		"status.podIPs",
		"status.nominatedNodeName", "status.replicas",
		"status.successful", "status.succeeded", "metadata.uid", "metadata.labels", "spec", "nothing",
	}
	for _, r := range kinds.Resources() {
		for _, v := range r.Versions {
			gvk := schema.GroupVersionKind{Group: r.Group, Version: v.Name, Kind: r.Kind}
			if r.Virtual || !legacyscheme.Scheme.Recognizes(gvk) {
				continue
			}
			var got, want []string
			for label := range r.StrategyFor(v).FieldLabels {
				got = append(got, label)
				if !slices.Contains(candidates, label) {
					t.Errorf("%v: %s is not asked of Kubernetes here", gvk, label)
				}
			}
			for _, label := range candidates {
				if _, _, err := legacyscheme.Scheme.ConvertFieldLabel(gvk, label, "x"); err == nil {
					want = append(want, label)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%v: %q, want %q", gvk, got, want)
			}
			_, _, err := legacyscheme.Scheme.ConvertFieldLabel(gvk, "metadata.namespace", "x")
			if r.Kind == "PodCertificateRequest" {
				continue // Kubernetes has forgotten that it has a namespace
			}
			if supported := r.Namespaced || r.StrategyFor(v).FieldLabels == nil; supported != (err == nil) {
				t.Errorf("%v: metadata.namespace: %v", gvk, err)
			}
		}
	}
}
