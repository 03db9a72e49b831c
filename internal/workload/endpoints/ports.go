package endpoints

import (
	"encoding/binary"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// ports resolves the ports of a service at its pods. Pods with equal port numbers share a list, so that the hashes and
// the memory of a service with many ports do not multiply by its pods.
type ports struct {
	svc   *corev1.Service
	lists map[string]*portList // by the numbers of the service's ports
}

// portList is a list of ports in Kubernetes' order.
type portList struct {
	list []discoveryv1.EndpointPort
	key  string // does not depend on the order
}

func newPorts(svc *corev1.Service) *ports { return &ports{svc, map[string]*portList{}} }

// of returns the ports of the service on a pod, without named ports that its containers lack.
func (s *ports) of(p *corev1.Pod) *portList {
	named := namedPorts(s.svc, p)
	var numbers []byte
	for i := range s.svc.Spec.Ports {
		n, ok := named.number(&s.svc.Spec.Ports[i])
		if !ok {
			n = -1
		}
		numbers = binary.LittleEndian.AppendUint32(numbers, uint32(n))
	}
	if known := s.lists[string(numbers)]; known != nil {
		return known
	}
	out := &portList{list: []discoveryv1.EndpointPort{}}
	for i := range s.svc.Spec.Ports {
		port := &s.svc.Spec.Ports[i]
		if n, ok := named.number(port); ok {
			out.list = append(out.list, discoveryv1.EndpointPort{
				Name: &port.Name, Port: &n, Protocol: &port.Protocol, AppProtocol: port.AppProtocol,
			})
		}
	}
	byHash(out.list)
	out.key = portsKey(out.list)
	s.lists[string(numbers)] = out
	return out
}

// portName is the name of a container's port.
type portName struct {
	name     string
	protocol corev1.Protocol
}

// containerPorts are the numbers of a pod's named ports.
type containerPorts map[portName]int32

// namedPorts returns the named ports of a pod's containers and sidecars, nil if the service uses no names.
func namedPorts(svc *corev1.Service, p *corev1.Pod) containerPorts {
	if !slices.ContainsFunc(svc.Spec.Ports, func(port corev1.ServicePort) bool {
		return port.TargetPort.Type == intstr.String
	}) {
		return nil
	}
	containers := slices.Clone(p.Spec.Containers)
	for _, c := range p.Spec.InitContainers {
		if replica.IsSidecar(p, c.Name) {
			containers = append(containers, c)
		}
	}
	out := containerPorts{}
	for _, c := range containers {
		for _, own := range c.Ports {
			if name := (portName{own.Name, own.Protocol}); out[name] == 0 { // the first one counts
				out[name] = own.ContainerPort
			}
		}
	}
	return out
}

// number returns the number of a service's port at the pod.
func (c containerPorts) number(port *corev1.ServicePort) (int32, bool) {
	if port.TargetPort.Type == intstr.Int {
		return port.TargetPort.IntVal, true
	}
	n, ok := c[portName{port.TargetPort.StrVal, port.Protocol}]
	return n, ok
}

// portsKey returns a key for a port list that does not depend on its order.
func portsKey(ports []discoveryv1.EndpointPort) string {
	var texts []string
	for _, p := range ports {
		text, _ := json.Marshal(p) // it holds only strings and numbers
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	key, _ := json.Marshal(texts)
	return string(key)
}
