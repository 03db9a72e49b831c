package localpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

// divert is the egress.Diversion of the addresses of local pods. An address without a route refuses connections.
func (p *Pods) divert(address string) egress.Dial {
	if !egress.IsProgram(address) {
		return nil
	}
	to := netip.MustParseAddrPort(address)
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx, to) }
}

// dial opens a connection to a port of the program with an address. Its errors are Go's for the same situation on a
// network.
func (p *Pods) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	r := p.at(to.Addr().Unmap())
	refused := &net.OpError{
		Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to),
		Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
	}
	if r == nil || !r.ports[int(to.Port())] {
		return nil, refused
	}
	c, err := r.link.Dial(ctx, int(to.Port()))
	if errors.Is(err, callback.ErrGone) {
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("port %d of local pod %s: %w", to.Port(), podKey(r.pod), err)
	}
	return &conn{c.(halfCloser), to}, nil
}

// at returns the route of an address, or nil if there is none.
func (p *Pods) at(ip netip.Addr) *route {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.routes {
		if r.link != nil && r.hasAddress(ip) {
			return r
		}
	}
	return nil
}

// halfCloser is a connection that can end its own data.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// conn is a connection to a port of a local pod.
type conn struct {
	halfCloser
	to netip.AddrPort
}

// RemoteAddr returns the address of the pod.
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }

// route returns the route of a pod.
func (p *Pods) route(pod *corev1.Pod) (*route, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.routes[podKey(pod)]; r != nil && r.link != nil && r.pod.UID == pod.UID {
		return r, nil
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf(
		"local pod %s has no program at this server: its connection has ended, or leads to another server", pod.Name))
}

// Dial implements kubelet.Local.
func (p *Pods) Dial(ctx context.Context, pod *corev1.Pod, port int) (net.Conn, error) {
	r, err := p.route(pod)
	if err != nil {
		return nil, err
	}
	if port < 1 || port >= 1<<16 {
		return nil, fmt.Errorf("%d is not a port", port)
	}
	ip := netip.MustParseAddr(r.addresses[0].IP)
	return p.dial(ctx, netip.AddrPortFrom(ip, uint16(port)))
}

// Log implements kubelet.Local. The program's command selects the lines.
func (p *Pods) Log(ctx context.Context, pod *corev1.Pod, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	r, err := p.route(pod)
	if err != nil {
		return nil, err
	}
	if o.Previous {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s is a local program, which has no previous run", pod.Name))
	}
	query := url.Values{}
	set := func(name string, n *int64) {
		if n != nil {
			query.Set(name, strconv.FormatInt(*n, 10))
		}
	}
	set("tailLines", o.TailLines)
	set("limitBytes", o.LimitBytes)
	switch {
	case o.SinceSeconds != nil:
		since := p.cluster.Now().Add(-time.Duration(min(*o.SinceSeconds, 1<<31)) * time.Second)
		query.Set("sinceTime", since.Format(time.RFC3339Nano))
	case o.SinceTime != nil:
		query.Set("sinceTime", o.SinceTime.Format(time.RFC3339Nano))
	}
	if o.Stream != nil {
		query.Set("stream", *o.Stream)
	}
	query.Set("follow", strconv.FormatBool(o.Follow))
	query.Set("timestamps", strconv.FormatBool(o.Timestamps))
	return r.link.Get(ctx, callback.LogPath+"?"+query.Encode())
}
