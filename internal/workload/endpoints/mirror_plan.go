package endpoints

//lint:file-ignore SA1019 Endpoints are made and served as ever

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// mirroring is the set of changes that update the slices of Endpoints.
type mirroring struct {
	changes
	// invalid counts addresses that are not IP addresses, and skipped counts addresses beyond the limit.
	invalid, skipped int
}

// mirror returns the changes to the slices of Endpoints: there is one slice for each port list and address family.
func mirror(of *corev1.Endpoints, existing []*discoveryv1.EndpointSlice) (out mirroring) {
	type slot struct {
		family discoveryv1.AddressType
		ports  string
	}
	there := map[slot][]*discoveryv1.EndpointSlice{}
	for _, s := range existing {
		at := slot{s.AddressType, portsKey(s.Ports)}
		there[at] = append(there[at], s)
	}
	for _, subset := range repack(of.Subsets) {
		ports := slicePorts(subset.Ports)
		for family, list := range out.families(subset) {
			want := mirrorSlice(of, family, ports)
			want.Endpoints = list
			at := slot{family, portsKey(ports)}
			if len(there[at]) == 0 {
				out.create = append(out.create, want)
				continue
			}
			first := there[at][0]
			there[at] = there[at][1:] // one is enough; the rest are deleted
			if !sameMirror(first, want) {
				out.update = append(out.update, rewrite(first, want))
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(there), func(a, b slot) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.ports, b.ports))
	}) {
		out.remove = append(out.remove, there[at]...)
	}
	out.recycle()
	return out
}

// families returns the endpoints of a subset by address family, the ready ones first, and counts the omitted ones.
func (m *mirroring) families(subset corev1.EndpointSubset) map[discoveryv1.AddressType][]discoveryv1.Endpoint {
	out := map[discoveryv1.AddressType][]discoveryv1.Endpoint{}
	left := mostAddresses
	for i, list := range [][]corev1.EndpointAddress{subset.Addresses, subset.NotReadyAddresses} {
		for k := range list {
			ip := netutils.ParseIPSloppy(list[k].IP)
			switch {
			case left == 0:
				m.skipped++
				continue
			case ip == nil:
				m.invalid++
				continue
			}
			left--
			ready, family := i == 0, discoveryv1.AddressTypeIPv6
			if ip.To4() != nil {
				family = discoveryv1.AddressTypeIPv4
			}
			e := discoveryv1.Endpoint{
				Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
				TargetRef: list[k].TargetRef, NodeName: list[k].NodeName,
			}
			if list[k].Hostname != "" {
				e.Hostname = &list[k].Hostname
			}
			out[family] = append(out[family], e)
		}
	}
	return out
}

// recycle reuses slices that would be deleted for slices that would be created, within an address family.
func (m *mirroring) recycle() {
	m.create = slices.DeleteFunc(m.create, func(want *discoveryv1.EndpointSlice) bool {
		at := slices.IndexFunc(m.remove, func(s *discoveryv1.EndpointSlice) bool {
			return s.AddressType == want.AddressType
		})
		if at < 0 {
			return false
		}
		m.update = append(m.update, rewrite(m.remove[at], want))
		m.remove = slices.Delete(m.remove, at, at+1)
		return true
	})
}

// rewrite returns a slice with the contents of another. As in Kubernetes it is written like a new object of the same
// name, without generateName.
func rewrite(s, want *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	next := s.DeepCopy()
	next.GenerateName = ""
	next.Labels, next.Annotations, next.OwnerReferences = want.Labels, want.Annotations, want.OwnerReferences
	next.Ports, next.Endpoints = want.Ports, want.Endpoints
	return next
}

// sameMirror reports whether a slice equals the wanted one, in any order of endpoints.
func sameMirror(s, want *discoveryv1.EndpointSlice) bool {
	return equality.Semantic.DeepEqual(s.Labels, want.Labels) &&
		equality.Semantic.DeepEqual(s.Annotations, want.Annotations) &&
		equality.Semantic.DeepEqual(s.OwnerReferences, want.OwnerReferences) &&
		slices.Equal(endpointTexts(s.Endpoints), endpointTexts(want.Endpoints))
}

func endpointTexts(list []discoveryv1.Endpoint) (out []string) {
	for _, e := range list {
		if e.TargetRef != nil {
			ref := *e.TargetRef
			ref.ResourceVersion = "" // it does not matter for the target
			e.TargetRef = &ref
		}
		text, _ := json.Marshal(e) // it holds only strings and booleans
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
}

// mirrorSlice returns a new slice for Endpoints, with their labels and annotations but for two.
func mirrorSlice(
	of *corev1.Endpoints, family discoveryv1.AddressType, ports []discoveryv1.EndpointPort,
) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, GenerateName: of.Name + "-",
			Labels: maps.Clone(of.Labels), Annotations: maps.Clone(of.Annotations),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(of, cluster.Endpoints.GroupVersionKind()),
			},
		},
		AddressType: family, Ports: ports,
	}
	if len(validation.NameIsDNSSubdomain(s.GenerateName, true)) > 0 { // too long for a dash
		s.GenerateName = of.Name
	}
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[discoveryv1.LabelServiceName], s.Labels[discoveryv1.LabelManagedBy] = of.Name, mirroredBy
	delete(s.Annotations, corev1.EndpointsLastChangeTriggerTime)
	delete(s.Annotations, corev1.LastAppliedConfigAnnotation)
	return s
}

func slicePorts(list []corev1.EndpointPort) []discoveryv1.EndpointPort {
	out := []discoveryv1.EndpointPort{}
	for i := range list {
		p := &list[i]
		out = append(out, discoveryv1.EndpointPort{
			Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol, AppProtocol: p.AppProtocol,
		})
	}
	byHash(out)
	return out
}

// host is an address with its target: two pods may share an IP.
type host struct {
	ip  string
	uid types.UID
}

// served are the addresses that have a port, and whether each is ready. An address listed as both ready and not ready
// is not ready.
type served struct {
	port  *corev1.EndpointPort // nil if the subset has no ports
	ready map[host]bool
}

// pairsMost is the largest number of pairs of an address and a port in mirrored Endpoints.
const pairsMost = 1_000_000

// pairs returns the number of pairs of an address and a port, which the work of repack grows with.
func pairs(subsets []corev1.EndpointSubset) (n int) {
	for _, s := range subsets {
		n += (len(s.Addresses) + len(s.NotReadyAddresses)) * max(1, len(s.Ports))
	}
	return n
}

// repack normalizes subsets so that no two of them share a port, or all of their addresses.
func repack(subsets []corev1.EndpointSubset) (out []corev1.EndpointSubset) {
	addresses, ports := map[host]corev1.EndpointAddress{}, map[string]*served{}
	for _, subset := range subsets {
		each := []*corev1.EndpointPort{nil}
		if len(subset.Ports) > 0 {
			each = nil
		}
		for i := range subset.Ports {
			each = append(each, &subset.Ports[i])
		}
		for _, port := range each {
			key, _ := json.Marshal(port) // it is made of strings and a number
			if ports[string(key)] == nil {
				ports[string(key)] = &served{port: port, ready: map[host]bool{}}
			}
			ports[string(key)].add(subset.Addresses, true, addresses)
			ports[string(key)].add(subset.NotReadyAddresses, false, addresses)
		}
	}
	groups := map[string]*corev1.EndpointSubset{}
	for _, key := range slices.Sorted(maps.Keys(ports)) {
		p := ports[key]
		list := slices.SortedFunc(maps.Keys(p.ready), func(a, b host) int {
			return cmp.Or(cmp.Compare(a.ip, b.ip), cmp.Compare(a.uid, b.uid))
		})
		var text strings.Builder
		for _, h := range list {
			text.WriteString(h.ip + " " + string(h.uid) + "\n")
		}
		g := groups[text.String()]
		if g == nil {
			g = &corev1.EndpointSubset{}
			for _, h := range list {
				if p.ready[h] {
					g.Addresses = append(g.Addresses, addresses[h])
				} else {
					g.NotReadyAddresses = append(g.NotReadyAddresses, addresses[h])
				}
			}
			groups[text.String()] = g
		}
		if p.port != nil {
			g.Ports = append(g.Ports, *p.port)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, *groups[key])
	}
	return out
}

// add adds addresses that have the port.
func (s *served) add(list []corev1.EndpointAddress, ready bool, addresses map[host]corev1.EndpointAddress) {
	for _, a := range list {
		h := host{ip: a.IP}
		if a.TargetRef != nil {
			h.uid = a.TargetRef.UID
		}
		if _, there := addresses[h]; !there {
			addresses[h] = a
		}
		if was, there := s.ready[h]; !there || was {
			s.ready[h] = ready
		}
	}
}
