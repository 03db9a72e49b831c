package endpoints

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// overload is by how much more than its part an endpoint may get before hints do harm (KEP-2433).
const overload = 0.2

// quota is how many endpoints a zone is to have, by the part of the CPU that its nodes have.
type quota struct {
	least, most int
	wanted      float64
}

// shares returns the CPU shares of zones, over all ready nodes outside the control plane. It returns nil if a node
// lacks a zone or CPU, or if there is only one zone.
func shares(nodes []*corev1.Node) map[string]float64 {
	cpu, total := map[string]float64{}, 0.0 // integers would overflow
	for _, n := range nodes {
		_, main := n.Labels["node-role.kubernetes.io/control-plane"]
		_, master := n.Labels["node-role.kubernetes.io/master"]
		if main || master || !nodeIsReady(n) {
			continue
		}
		zone, has := n.Labels[corev1.LabelTopologyZone], float64(n.Status.Allocatable.Cpu().MilliValue())
		if zone == "" || has == 0 {
			return nil
		}
		cpu[zone] += has
		total += has
	}
	if len(cpu) < 2 {
		return nil
	}
	out := map[string]float64{}
	for zone, has := range cpu {
		out[zone] = has / total
	}
	return out
}

func nodeIsReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// quotas returns how many of n endpoints each zone is to have, or why that cannot be.
func quotas(shares map[string]float64, n int) (out map[string]quota, why string) {
	switch {
	case shares == nil:
		return nil, "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
	case len(shares) > n:
		return nil, fmt.Sprintf("Insufficient number of endpoints (%d endpoints, %d zones)", n, len(shares))
	}
	out = map[string]quota{}
	all := 0
	for zone, share := range shares {
		wanted := share * float64(n)
		least := int(math.Ceil(wanted / (1 + overload)))
		out[zone] = quota{least: least, wanted: max(wanted, float64(least))}
		all += least
	}
	if all > n {
		return nil, fmt.Sprintf("Unable to allocate minimum required endpoints to each zone without exceeding overload "+
			"threshold (%d endpoints, %d zones)", n, len(shares))
	}
	for zone, q := range out {
		q.most = q.least + n - all
		out[zone] = q
	}
	return out, ""
}

// share distributes endpoints over zones by CPU share: first the endpoints of the zone itself, then surplus ones of
// other zones. If that is not possible, no endpoint gets hints, and an event reports the reason.
func (h *hints) share(c *changes, same []*discoveryv1.EndpointSlice, family discoveryv1.AddressType) {
	disable := func(why string) {
		h.disabled(family, why)
		c.rehint(same, none)
	}
	n := 0
	for _, s := range slices.Concat(c.create, c.update, same) {
		for i := range s.Endpoints {
			if isReady(&s.Endpoints[i]) {
				n++
			}
		}
	}
	quotas, why := quotas(h.shares, n)
	if why != "" {
		disable(why)
		return
	}
	given := map[string]int{}
	for i, s := range same {
		if !count(s, given, quotas) {
			c.update = append(c.update, s.DeepCopy())
			same[i] = nil
		}
	}
	same = slices.DeleteFunc(same, func(s *discoveryv1.EndpointSlice) bool { return s == nil })
	var open []*discoveryv1.Endpoint
	for _, s := range slices.Concat(c.create, c.update) {
		for i := range s.Endpoints {
			if e := &s.Endpoints[i]; isReady(e) {
				open = append(open, e)
			}
		}
	}
	for _, e := range open {
		if e.Zone == nil || *e.Zone == "" {
			disable("One or more endpoints do not have a zone specified")
			return
		}
		given[*e.Zone]++
		e.Hints = forZone(*e.Zone)
	}
	if len(given) == 0 {
		disable("No hints allocated for zones")
		return
	}
	move(open, quotas, given)
	if !h.on {
		h.on = true
		h.reports = append(h.reports, hintReport{corev1.EventTypeNormal, "TopologyAwareHintsEnabled",
			"Topology Aware Hints has been enabled, addressType: " + string(family)})
	}
}

// count adds the hints of a slice to the numbers given to zones, and reports whether they can stay.
func count(s *discoveryv1.EndpointSlice, given map[string]int, quotas map[string]quota) bool {
	own := map[string]int{}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if !isReady(e) {
			continue
		}
		if e.Hints == nil || len(e.Hints.ForZones) == 0 {
			return false
		}
		for _, zone := range e.Hints.ForZones {
			own[zone.Name]++
		}
	}
	for zone, n := range own {
		if q, ok := quotas[zone]; !ok || n+given[zone] > q.most {
			return false
		}
	}
	for zone, n := range own {
		given[zone] += n
	}
	return true
}

// move assigns surplus endpoints to zones with too few.
func move(open []*discoveryv1.Endpoint, quotas map[string]quota, given map[string]int) {
	over, under := map[string]float64{}, map[string]float64{}
	for zone, q := range quotas {
		if d := float64(given[zone]) - q.wanted; d > 0 {
			over[zone] = d
		} else if d < 0 {
			under[zone] = -d
		}
	}
	gives, takes := map[string]int{}, map[string]int{}
	for {
		from, more := most(over)
		to, less := most(under)
		if from == "" || to == "" || more < 1 && less < 1 || more < 0.5 || less < 0.5 {
			break
		}
		gives[from]++
		over[from]--
		takes[to]++
		under[to]--
	}
	for _, e := range open {
		if gives[*e.Zone] == 0 {
			continue
		}
		for _, to := range slices.Sorted(maps.Keys(takes)) {
			if takes[to] > 0 {
				e.Hints = forZone(to)
				gives[*e.Zone]--
				takes[to]--
				break
			}
		}
	}
}

// most returns the zone with the largest number, the first by name of several.
func most(of map[string]float64) (zone string, n float64) {
	for _, z := range slices.Sorted(maps.Keys(of)) {
		if of[z] > n {
			zone, n = z, of[z]
		}
	}
	return zone, n
}
