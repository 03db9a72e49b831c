package endpoints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// hints sets the zones and nodes that endpoints serve: by spec.trafficDistribution of their service (KEP-4444,
// KEP-3015), or by the annotation for topology (KEP-2433), which takes precedence.
type hints struct {
	// shares are the CPU shares of zones; nil if they are unknown.
	shares map[string]float64
	// on reports whether the service currently has hints by the annotation.
	on      bool
	reports []hintReport
}

// hintReport is an event of a service.
type hintReport struct{ kind, reason, message string }

// byTopology reports whether a service asks for hints by the CPU of zones.
func byTopology(svc *corev1.Service) bool {
	value, ok := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !ok {
		value = svc.Annotations[corev1.AnnotationTopologyMode]
	}
	return value == "Auto" || value == "auto"
}

// give sets the hints of the slices to be written, and adds slices with wrong hints to them. same are the slices that
// would otherwise stay unchanged.
func (h *hints) give(svc *corev1.Service, c *changes, same []*discoveryv1.EndpointSlice,
	family discoveryv1.AddressType,
) {
	if byTopology(svc) {
		h.share(c, same, family)
		return
	}
	if h.on {
		h.disabled(family, "Topology Aware Hints has been disabled")
	}
	want := none
	switch by := svc.Spec.TrafficDistribution; {
	case by == nil:
	case *by == corev1.ServiceTrafficDistributionPreferSameNode:
		want = sameNode
	case *by == corev1.ServiceTrafficDistributionPreferClose, *by == corev1.ServiceTrafficDistributionPreferSameZone:
		want = sameZone
	}
	c.rehint(same, want)
}

func (h *hints) disabled(family discoveryv1.AddressType, why string) {
	h.on = false
	h.reports = append(h.reports, hintReport{corev1.EventTypeWarning, "TopologyAwareHintsDisabled",
		why + ", addressType: " + string(family)})
}

// rehint sets the hints of each endpoint to the result of want.
func (c *changes) rehint(
	same []*discoveryv1.EndpointSlice, want func(*discoveryv1.Endpoint) *discoveryv1.EndpointHints,
) {
	for _, s := range same {
		if slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return !equality.Semantic.DeepEqual(e.Hints, want(&e))
		}) {
			c.update = append(c.update, s.DeepCopy())
		}
	}
	for _, s := range slices.Concat(c.create, c.update) {
		for i := range s.Endpoints {
			s.Endpoints[i].Hints = want(&s.Endpoints[i])
		}
	}
}

func none(*discoveryv1.Endpoint) *discoveryv1.EndpointHints { return nil }

// sameZone has traffic stay in its zone.
func sameZone(e *discoveryv1.Endpoint) *discoveryv1.EndpointHints {
	if !isReady(e) || e.Zone == nil {
		return nil
	}
	return forZone(*e.Zone)
}

// sameNode keeps traffic on its node, or else in its zone.
func sameNode(e *discoveryv1.Endpoint) *discoveryv1.EndpointHints {
	out := sameZone(e)
	if !isReady(e) || e.NodeName == nil {
		return out
	}
	if out == nil {
		out = &discoveryv1.EndpointHints{}
	}
	out.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
	return out
}

func forZone(name string) *discoveryv1.EndpointHints {
	return &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: name}}}
}

func isReady(e *discoveryv1.Endpoint) bool { return e.Conditions.Ready != nil && *e.Conditions.Ready }
