package endpoints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// TestOrderOfPorts checks that ports are sorted by hash as in Kubernetes' controllers, whatever their input order.
func TestOrderOfPorts(t *testing.T) {
	t.Parallel()
	udp, tcp, protocol := corev1.ProtocolUDP, corev1.ProtocolTCP, "dns"
	plain := discoveryv1.EndpointPort{Name: new("dns"), Port: new(int32(53)), Protocol: &udp}
	other := discoveryv1.EndpointPort{
		Name: new("dns-tcp"), Port: new(int32(53)), Protocol: &tcp, AppProtocol: &protocol,
	}
	for _, ports := range [][]discoveryv1.EndpointPort{{plain, other}, {other, plain}} {
		byHash(ports)
		if *ports[0].Name != "dns-tcp" {
			t.Errorf("%s is first", *ports[0].Name)
		}
	}
}
