package endpoints

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// ready returns a slice of ready endpoints, each in a zone and on its node.
func ready(zones ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{}
	yes := true
	for i, zone := range zones {
		node := fmt.Sprint("node-", i)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Zone: &zone, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &yes},
		})
	}
	return s
}

// hinted returns the hints of a slice's endpoints: "zone" or "zone/node".
func hinted(s *discoveryv1.EndpointSlice) (out []string) {
	for _, e := range s.Endpoints {
		text := ""
		if e.Hints != nil {
			for _, z := range e.Hints.ForZones {
				text += z.Name
			}
			for _, n := range e.Hints.ForNodes {
				text += "/" + n.Name
			}
		}
		out = append(out, text)
	}
	return out
}

// TestTrafficDistribution checks the hints of services with trafficDistribution, and that a slice without hints is
// updated.
func TestTrafficDistribution(t *testing.T) {
	for by, want := range map[string][]string{
		corev1.ServiceTrafficDistributionPreferClose:    {"a", "b", ""},
		corev1.ServiceTrafficDistributionPreferSameZone: {"a", "b", ""},
		corev1.ServiceTrafficDistributionPreferSameNode: {"a/node-0", "b/node-1", ""},
		"": {"", "", ""},
	} {
		svc := &corev1.Service{}
		if by != "" {
			svc.Spec.TrafficDistribution = &by
		}
		there := ready("a", "b", "c")
		there.Endpoints[2].Conditions.Ready = new(bool)
		c, h := changes{}, hints{}
		h.give(svc, &c, []*discoveryv1.EndpointSlice{there}, discoveryv1.AddressTypeIPv4)
		if (len(c.update) == 1) != (by != "") || len(h.reports) > 0 {
			t.Fatalf("%s: %d updates, %v", by, len(c.update), h.reports)
		}
		if by != "" && !slices.Equal(hinted(c.update[0]), want) {
			t.Errorf("%s: %v, want %v", by, hinted(c.update[0]), want)
		}
	}
}

// TestTopology checks that hints by topology distribute endpoints over zones by their nodes' CPU, or that an event has
// the reason.
func TestTopology(t *testing.T) {
	for _, test := range []struct {
		shares map[string]float64
		zones  []string
		hints  []string
		want   string
	}{
		{map[string]float64{"a": 0.5, "b": 0.5}, []string{"a", "b"}, []string{"a", "b"}, "TopologyAwareHintsEnabled: " +
			"Topology Aware Hints has been enabled, addressType: IPv4"},
		{map[string]float64{"a": 0.5, "b": 0.5}, []string{"a", "a", "a", "a"}, []string{"b", "b", "a", "a"},
			"TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4"},
		{map[string]float64{"a": 0.5, "b": 0.5}, []string{"a"}, []string{""}, "TopologyAwareHintsDisabled: " +
			"Insufficient number of endpoints (1 endpoints, 2 zones), addressType: IPv4"},
		{map[string]float64{"a": 0.6, "b": 0.3, "c": 0.1}, []string{"a", "b", "c"}, []string{"", "", ""},
			"TopologyAwareHintsDisabled: Unable to allocate minimum required endpoints to each zone without exceeding " +
				"overload threshold (3 endpoints, 3 zones), addressType: IPv4"},
		{nil, []string{"a", "b"}, []string{"", ""}, "TopologyAwareHintsDisabled: Insufficient Node information: " +
			"allocatable CPU or zone not specified on one or more nodes, addressType: IPv4"},
		{map[string]float64{"a": 0.5, "b": 0.5}, []string{"a", ""}, []string{"", ""}, "TopologyAwareHintsDisabled: " +
			"One or more endpoints do not have a zone specified, addressType: IPv4"},
	} {
		svc := &corev1.Service{}
		svc.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
		c, h := changes{create: []*discoveryv1.EndpointSlice{ready(test.zones...)}}, hints{shares: test.shares}
		h.give(svc, &c, nil, discoveryv1.AddressTypeIPv4)
		if got := hinted(c.create[0]); !slices.Equal(got, test.hints) {
			t.Errorf("%v of %v: %v, want %v", test.zones, test.shares, got, test.hints)
		}
		if got := h.reports[0].reason + ": " + h.reports[0].message; got != test.want {
			t.Errorf("%v of %v: %s\nwant %s", test.zones, test.shares, got, test.want)
		}
	}
}
