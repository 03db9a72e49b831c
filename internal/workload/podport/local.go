package podport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Flag lists the ports of the server's machine that may stand for ports of pods.
const Flag = "--simulate-local-ports"

// localConn is a connection to a port of the server's machine that stands for a port of a pod.
type localConn struct {
	net.Conn
	to netip.AddrPort
}

// RemoteAddr returns the address of the pod.
func (c *localConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }

// allowed returns an error unless the administrator has listed a local port. The server's own port is never allowed:
// its own listener trusts loopback clients no more than others, but a pod must not stand for the API.
func (p *Ports) allowed(number int) error {
	switch {
	case number == p.cluster.Port:
		return fmt.Errorf("local port %d is the port of this server", number)
	case !p.local[number]:
		return fmt.Errorf("local port %d is not allowed: the administrator lists such ports with %s", number, Flag)
	}
	return nil
}

// dialLocal connects to a port of the server's machine, at the loopback address.
func (p *Ports) dialLocal(ctx context.Context, pod *corev1.Pod, to netip.AddrPort, number int) (net.Conn, error) {
	if err := p.allowed(number); err != nil {
		return nil, fmt.Errorf("port %d of pod %s: %w", to.Port(), pod.Name, err)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(number)))
	if err != nil {
		return nil, fmt.Errorf("port %d of pod %s stands for a local port: %w", to.Port(), pod.Name, err)
	}
	return &localConn{c, to}, nil
}
