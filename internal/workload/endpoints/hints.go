package endpoints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// hints says for which zones and nodes endpoints are: as spec.trafficDistribution of their service wants it (KEP-4444,
// KEP-3015), or the annotation for topology (KEP-2433), which comes first.
type hints struct {
	// shares are the parts of the CPU of all nodes that zones have; nil if that cannot be said.
	shares map[string]float64
	// on reports whether the service has hints by the annotation.
	on      bool
	reports []hintReport
}

// hintReport is an event of a service.
type hintReport struct{ kind, reason, message string }

// byTopology reports whether a service asks for hints by zones' CPU.
func byTopology(svc *corev1.Service) bool {
	value, ok := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !ok {
		value = svc.Annotations[corev1.AnnotationTopologyMode]
	}
	return value == "Auto" || value == "auto"
}

// give changes the slices that are to be written, and has those written besides whose hints are wrong. same are those
// that stay as they are otherwise.
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

// rehint gives each endpoint the hints that want returns for it.
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

// sameNode has traffic stay on its node, or else in its zone.
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
