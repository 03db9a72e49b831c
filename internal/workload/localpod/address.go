package localpod

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/net/egress"
)

// addressesLocked returns free addresses for a pod, of both families. They derive from the pod's name, so a program has
// the same address after a restart. taken are the addresses of stored pods.
func (p *Pods) addressesLocked(pod types.NamespacedName, taken map[string]bool) []corev1.PodIP {
	for _, r := range p.routes {
		for _, ip := range r.addresses {
			taken[ip.IP] = true
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(pod.String()))
	for number := h.Sum32(); ; number++ { // far fewer pods than addresses
		four, six := addresses(number)
		if !taken[four.String()] {
			return []corev1.PodIP{{IP: four.String()}, {IP: six.String()}}
		}
	}
}

// storedAddresses returns the addresses of the other local pods of all servers.
func (p *Pods) storedAddresses(pod types.NamespacedName) map[string]bool {
	taken := map[string]bool{}
	for _, e := range p.stored() {
		if e.Namespace != pod.Namespace || e.Name != pod.Name {
			ip, _ := e.Field("status.podIP")
			taken[ip] = true
		}
	}
	return taken
}

// addresses returns the addresses with a number, in the ranges of package egress. The last bits count.
func addresses(number uint32) (four, six netip.Addr) {
	bits := number & (1<<(32-egress.Programs4.Bits()) - 1)
	four4 := egress.Programs4.Addr().As4()
	binary.BigEndian.PutUint32(four4[:], binary.BigEndian.Uint32(four4[:])|bits)
	six16 := egress.Programs6.Addr().As16()
	binary.BigEndian.PutUint32(six16[12:], bits)
	return netip.AddrFrom4(four4), netip.AddrFrom16(six16)
}

// hasAddress reports whether a route has an address.
func (r *route) hasAddress(ip netip.Addr) bool {
	for _, own := range r.addresses {
		if own.IP == ip.String() {
			return true
		}
	}
	return false
}

// setAddresses writes the addresses of a route to the status of its pod.
func setAddresses(s *corev1.PodStatus, all []corev1.PodIP) {
	s.PodIPs, s.PodIP = all, all[0].IP
}

// podKey returns the key of a pod in routes.
func podKey(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
