package core

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// TestClusterAddresses checks that a service may request an address with leading zeros only if the strict feature is
// off.
func TestClusterAddresses(t *testing.T) {
	t.Parallel()
	service := object.Object{"spec": object.Object{
		"type": "ClusterIP", "clusterIP": "10.0.0.011", "clusterIPs": []any{"10.0.0.011"}, "ipFamilies": []any{"IPv4"},
	}}
	errs := ClusterAddresses(service, nil, nil)
	if len(errs) != 1 || errs[0].Detail != "must not have leading 0s" {
		t.Errorf("with the feature: %v", errs)
	}
	if errs := ClusterAddresses(service, nil, []string{rule.StrictAddresses}); len(errs) > 0 {
		t.Errorf("without it: %v", errs)
	}
}
