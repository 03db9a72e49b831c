package address

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PortsPrefix is the prefix of the records of node ports, one for each. Kubernetes has a single record, a bitmap under
// "ranges/servicenodeports", on which all services with a port would contend.
const PortsPrefix = "nodeports"

var errPortUsed = errors.New("provided port is already allocated")

// ports assigns the missing node ports of a service.
func (a *assignment) ports() error {
	spec := a.spec
	p := &portChoice{assignment: a}
	if onNodes(spec.Type) {
		var err error
		if a.was == nil {
			err = p.forNew()
		} else {
			err = p.forChanged()
		}
		if err != nil {
			return err
		}
	}
	if !needsHealthPort(spec) || a.was != nil && needsHealthPort(a.was) {
		return nil
	}
	if err := p.health(); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// portChoice is the node port allocation of one service.
type portChoice struct {
	*assignment
	taken []int32
}

// forNew assigns the ports of a new service. Ports that differ only in their protocol get the same number.
func (p *portChoice) forNew() error {
	given := map[int32]int32{} // port -> node port
	ports := p.spec.Ports
	for i := range ports {
		port := &ports[i]
		if port.NodePort == 0 && !p.fills() {
			continue
		}
		switch has := given[port.Port]; {
		case has == 0:
			if err := p.give(i, requestedPort(ports, port.Port)); err != nil {
				return err
			}
			given[port.Port] = port.NodePort
		case port.NodePort == 0:
			port.NodePort = has
		case port.NodePort != has:
			if err := p.give(i, port.NodePort); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestedPort returns the node port that a service requests for a port, 0 if it requests none.
func requestedPort(ports []corev1.ServicePort, number int32) int32 {
	for _, port := range ports {
		if port.Port == number && port.NodePort != 0 {
			return port.NodePort
		}
	}
	return 0
}

// forChanged assigns ports to a service that has some.
func (p *portChoice) forChanged() error {
	had := map[int32]bool{}
	for _, port := range p.was.Ports {
		had[port.NodePort] = true
	}
	type socket struct {
		Protocol corev1.Protocol
		NodePort int32
	}
	var sockets []socket
	for i := range p.spec.Ports {
		port := &p.spec.Ports[i]
		if port.NodePort == 0 && !p.fills() {
			continue
		}
		if n := port.NodePort; n == 0 || !had[n] {
			if err := p.give(i, n); err != nil {
				return err
			}
			had[n] = n != 0
		}
		s := socket{port.Protocol, port.NodePort}
		if slices.Contains(sockets, s) {
			return fmt.Errorf("duplicate nodePort: %v", s)
		}
		sockets = append(sockets, s)
	}
	return nil
}

// health assigns the health check port of a service, at which nodes report whether they have a pod of it.
func (p *portChoice) health() error {
	if n := p.spec.HealthCheckNodePort; n != 0 {
		if err := p.ask(n); err != nil {
			return fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %w", n, err)
		}
		return nil
	}
	n, err := p.any()
	if err != nil {
		return fmt.Errorf("failed to allocate a HealthCheck NodePort %v: %w", n, err)
	}
	p.spec.HealthCheckNodePort = n
	return nil
}

// give sets the node port with index i to n, or to any free one if n is 0.
func (p *portChoice) give(i int, n int32) (err error) {
	if n == 0 {
		if n, err = p.any(); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", err))
		}
	} else if err := p.ask(n); err != nil {
		return p.invalid(field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), n, err.Error()))
	}
	p.spec.Ports[i].NodePort = n
	return nil
}

// ask takes the requested number. As in Kubernetes, a dry run does not check the range.
func (p *portChoice) ask(n int32) error {
	switch {
	case !p.dryRun && !p.NodePorts.Contains(int(n)):
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %s",
			p.NodePorts.String())
	case p.portUsed(n), slices.Contains(p.taken, n):
		return errPortUsed
	}
	p.taken = append(p.taken, n)
	return nil
}

// any takes a free number. A dry run returns Kubernetes' placeholder.
func (p *portChoice) any() (int32, error) {
	if p.dryRun {
		n := int32(32769)
		if len(p.taken) > 0 {
			n = slices.Max(p.taken) + 1
		}
		p.taken = append(p.taken, n)
		return n, nil
	}
	base, size := p.NodePorts.Base, uint64(p.NodePorts.Size)
	i, ok := pick(band(size, 32, 128), size, p.Random, func(i uint64) bool {
		n := int32(base + int(i))
		return p.portUsed(n) || slices.Contains(p.taken, n)
	})
	if !ok {
		return 0, fmt.Errorf("%w: widen it with --service-node-port-range", errFull)
	}
	n := int32(base + int(i))
	p.taken = append(p.taken, n)
	return n, nil
}

func (s *Services) portUsed(n int32) bool {
	return s.View.Collection(PortsPrefix).Snapshot().Get("", fmt.Sprint(n)) != nil
}

// fills reports whether the service gets ports on nodes that it does not name.
func (p *portChoice) fills() bool {
	if p.spec.Type != corev1.ServiceTypeLoadBalancer {
		return true
	}
	fill := p.spec.AllocateLoadBalancerNodePorts
	return fill == nil || *fill
}

func onNodes(kind corev1.ServiceType) bool {
	return kind == corev1.ServiceTypeNodePort || kind == corev1.ServiceTypeLoadBalancer
}

func needsHealthPort(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer &&
		spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// nodePorts returns all node ports of a service, including duplicates.
func nodePorts(spec *corev1.ServiceSpec) []int32 {
	var out []int32
	for _, port := range spec.Ports {
		out = append(out, port.NodePort)
	}
	if needsHealthPort(spec) {
		out = append(out, spec.HealthCheckNodePort)
	}
	return out
}
