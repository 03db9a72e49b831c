package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/admit"
)

var serviceNames = []string{"count/services", "services", "services.nodeports", "services.loadbalancers"}

var services = &evaluator{
	handles: func(a *admit.Attributes) bool { // an update may change the type
		return a.Subresource == "" && (a.Operation == admit.Create || a.Operation == admit.Update)
	},
	limits:  func(name string) bool { return slices.Contains(serviceNames, name) },
	measure: measureService,
}

func measureService(raw []byte) (*measure, error) {
	s, err := typed[corev1.Service](raw)
	if err != nil {
		return nil, err
	}
	ports, balancers := servicePorts(s)
	return &measure{amounts: amounts{
		"count/services": one(), "services": one(),
		"services.nodeports":     *resource.NewQuantity(ports, resource.DecimalSI),
		"services.loadbalancers": *resource.NewQuantity(balancers, resource.DecimalSI),
	}}, nil
}

// servicePorts returns the numbers of node ports and load balancers of a service. Ports count before they are
// allocated.
func servicePorts(s *corev1.Service) (ports, balancers int64) {
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		return int64(len(s.Spec.Ports)), 0
	case corev1.ServiceTypeLoadBalancer:
		if s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts {
			return int64(len(s.Spec.Ports)), 1
		}
		for _, p := range s.Spec.Ports {
			if p.NodePort != 0 {
				ports++
			}
		}
		return ports, 1
	}
	return 0, 0
}
