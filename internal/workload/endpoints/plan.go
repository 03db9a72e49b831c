package endpoints

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// managedBy is the managed-by label value of the slices.
const managedBy = "endpointslice-controller.k8s.io"

// mostEndpoints is the largest number of endpoints in a slice, as in --max-endpoints-per-slice of Kubernetes.
const mostEndpoints = 100

// changes are the writes that bring the slices of a service up to date.
type changes struct{ create, update, remove []*discoveryv1.EndpointSlice }

// group is the endpoints of a service with equal ports.
type group struct {
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
	existing  []*discoveryv1.EndpointSlice
}

// plan returns the changes to the slices of a service for its pods. zones maps node names to zones. Pods on missing
// nodes are left out, unless the service publishes addresses that are not ready.
func plan(
	svc *corev1.Service, pods []*corev1.Pod, zones map[string]string, existing []*discoveryv1.EndpointSlice, h *hints,
) (all changes) {
	families := addressTypes(svc)
	for _, s := range existing {
		if !slices.Contains(families, s.AddressType) {
			all.remove = append(all.remove, s)
		}
	}
	for _, family := range families {
		var own []*discoveryv1.EndpointSlice
		for _, s := range existing {
			if s.AddressType == family {
				own = append(own, s)
			}
		}
		c := planFamily(svc, pods, zones, own, family)
		h.give(svc, &c, c.untouched(own), family)
		c.reuse(svc)
		all.create = append(all.create, c.create...)
		all.update = append(all.update, c.update...)
		all.remove = append(all.remove, c.remove...)
	}
	return all
}

// untouched returns the slices that are neither changed nor removed.
func (c *changes) untouched(of []*discoveryv1.EndpointSlice) (out []*discoveryv1.EndpointSlice) {
	touched := map[string]bool{}
	for _, s := range slices.Concat(c.update, c.remove) {
		touched[s.Name] = true
	}
	for _, s := range of {
		if !touched[s.Name] {
			out = append(out, s)
		}
	}
	return out
}

// reuse reuses slices that would be deleted for slices that would be created.
func (c *changes) reuse(svc *corev1.Service) {
	for len(c.create) > 0 {
		at := slices.IndexFunc(c.remove, func(s *discoveryv1.EndpointSlice) bool { return belongs(s, svc) })
		if at < 0 {
			return
		}
		last := len(c.create) - 1
		next := c.remove[at].DeepCopy()
		next.Labels, next.Ports, next.Endpoints = c.create[last].Labels, c.create[last].Ports, c.create[last].Endpoints
		c.create, c.update = c.create[:last], append(c.update, next)
		c.remove = slices.Delete(c.remove, at, at+1)
	}
}

// planFamily is plan for the slices of one address type.
func planFamily(
	svc *corev1.Service, pods []*corev1.Pod, zones map[string]string, existing []*discoveryv1.EndpointSlice,
	family discoveryv1.AddressType,
) (c changes) {
	groups, known := map[string]*group{}, newPorts(svc)
	for _, p := range pods {
		zone, there := zones[p.Spec.NodeName]
		if !hasPlace(p) || !there && !cluster.IsLocal(p) && !svc.Spec.PublishNotReadyAddresses {
			continue
		}
		ports := known.of(p)
		g := groups[ports.key]
		if g == nil {
			g = &group{ports: ports.list}
			groups[ports.key] = g
		}
		if e := endpoint(svc, p, zone, family); len(e.Addresses) > 0 {
			g.endpoints = append(g.endpoints, e)
		}
	}
	for _, s := range existing {
		if g := groups[portsKey(s.Ports)]; g != nil && belongs(s, svc) {
			g.existing = append(g.existing, s)
		} else {
			c.remove = append(c.remove, s)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		c.fill(svc, groups[key], family)
	}
	if len(existing) > len(c.remove) || len(c.create) > 0 {
		return c
	}
	empty := newSlice(svc, family, []discoveryv1.EndpointPort{})
	if len(c.remove) == 1 && isEmpty(c.remove[0]) && equality.Semantic.DeepEqual(c.remove[0].Labels, empty.Labels) &&
		belongs(c.remove[0], svc) {
		c.remove = nil
		return c
	}
	c.create = append(c.create, empty)
	return c
}

func isEmpty(s *discoveryv1.EndpointSlice) bool { return len(s.Endpoints) == 0 && len(s.Ports) == 0 }

// fill distributes the endpoints of a group over its slices: an endpoint stays in its slice; new ones go to slices that
// change anyway, then to the slice that they fill best, then to new slices.
func (c *changes) fill(svc *corev1.Service, g *group, family discoveryv1.AddressType) {
	missing := g.endpoints
	var changed, same []*discoveryv1.EndpointSlice
	for _, s := range g.existing {
		var kept []discoveryv1.Endpoint
		differs := false
		for i := range s.Endpoints {
			at := slices.IndexFunc(missing, func(e discoveryv1.Endpoint) bool { return samePlace(&e, &s.Endpoints[i]) })
			if at < 0 {
				continue
			}
			now, was := missing[at], s.Endpoints[i]
			was.Hints = nil
			differs = differs || !equality.Semantic.DeepEqual(now, was)
			kept = append(kept, now)
			missing = slices.Delete(slices.Clone(missing), at, at+1)
		}
		labels := labelsOf(svc)
		differs = differs || len(kept) != len(s.Endpoints)
		switch {
		case differs && len(kept) == 0:
			c.remove = append(c.remove, s)
		case differs || !equality.Semantic.DeepEqual(labels, s.Labels):
			next := s.DeepCopy()
			next.Endpoints, next.Labels = kept, labels
			changed = append(changed, next)
		default:
			same = append(same, s)
		}
	}
	slices.SortStableFunc(changed, func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Compare(len(b.Endpoints), len(a.Endpoints))
	})
	for _, s := range changed {
		n := min(len(missing), mostEndpoints-len(s.Endpoints))
		s.Endpoints, missing = append(s.Endpoints, missing[:n]...), missing[n:]
	}
	c.update = append(c.update, changed...)
	for len(missing) > 0 {
		n := min(len(missing), mostEndpoints)
		if s := roomiest(same, len(missing)); s != nil {
			next := s.DeepCopy()
			next.Endpoints = append(next.Endpoints, missing...)
			c.update = append(c.update, next)
			return
		}
		s := newSlice(svc, family, g.ports)
		s.Endpoints, missing = missing[:n:n], missing[n:]
		c.create = append(c.create, s)
	}
}

// roomiest returns the slice that n more endpoints fill best, nil if none has room.
func roomiest(list []*discoveryv1.EndpointSlice, n int) (best *discoveryv1.EndpointSlice) {
	for _, s := range list {
		if len(s.Endpoints)+n <= mostEndpoints && (best == nil || len(s.Endpoints) > len(best.Endpoints)) {
			best = s
		}
	}
	return best
}

// addressTypes returns the types of addresses of a service.
func addressTypes(svc *corev1.Service) (out []discoveryv1.AddressType) {
	for _, f := range svc.Spec.IPFamilies {
		out = append(out, discoveryv1.AddressType(f))
	}
	return out
}

// hasPlace reports whether a pod can be an endpoint: it has an address and has not ended.
func hasPlace(p *corev1.Pod) bool {
	return !replica.HasEnded(p) && (p.Status.PodIP != "" || len(p.Status.PodIPs) > 0)
}

// endpoint returns a pod as an endpoint of a service, without addresses if it has none of the family.
func endpoint(
	svc *corev1.Service, p *corev1.Pod, zone string, family discoveryv1.AddressType,
) discoveryv1.Endpoint {
	serving, terminating := replica.IsReady(p), p.DeletionTimestamp != nil
	ready := svc.Spec.PublishNotReadyAddresses || serving && !terminating
	e := discoveryv1.Endpoint{
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
	}
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a.Is4() == (family == discoveryv1.AddressTypeIPv4) {
			e.Addresses = append(e.Addresses, a.String())
		}
	}
	if p.Spec.NodeName != "" {
		e.NodeName = &p.Spec.NodeName
	}
	if zone != "" {
		e.Zone = &zone
	}
	if p.Spec.Hostname != "" && p.Spec.Subdomain == svc.Name {
		e.Hostname = &p.Spec.Hostname
	}
	return e
}

// samePlace reports whether two endpoints are the same pod at the same addresses.
func samePlace(a, b *discoveryv1.Endpoint) bool {
	if !slices.Equal(a.Addresses, b.Addresses) || (a.TargetRef == nil) != (b.TargetRef == nil) {
		return false
	}
	return a.TargetRef == nil || a.TargetRef.Namespace == b.TargetRef.Namespace && a.TargetRef.Name == b.TargetRef.Name
}

// belongs reports whether a slice belongs to the service, and not to an earlier one of its name.
func belongs(s *discoveryv1.EndpointSlice, svc *corev1.Service) bool {
	return slices.ContainsFunc(s.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.UID == svc.UID && ref.Kind == "Service" && ref.APIVersion == "v1"
	})
}

func newSlice(
	svc *corev1.Service, family discoveryv1.AddressType, ports []discoveryv1.EndpointPort,
) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: svc.Namespace, GenerateName: svc.Name + "-", Labels: labelsOf(svc),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(svc, cluster.Services.GroupVersionKind()),
			},
		},
		AddressType: family, Ports: ports, Endpoints: []discoveryv1.Endpoint{},
	}
}

// labelsOf returns the labels of a service's slices: the service's own, and the identifying ones.
func labelsOf(svc *corev1.Service) map[string]string {
	out := maps.Clone(svc.Labels)
	if out == nil {
		out = map[string]string{}
	}
	delete(out, corev1.IsHeadlessService)
	if svc.Spec.ClusterIP == "" || svc.Spec.ClusterIP == corev1.ClusterIPNone {
		out[corev1.IsHeadlessService] = ""
	}
	out[discoveryv1.LabelServiceName], out[discoveryv1.LabelManagedBy] = svc.Name, managedBy
	return out
}
