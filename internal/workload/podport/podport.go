// Package podport provides the ports of pods on simulated nodes.
//
// No container runs, so nothing listens at the address of such a pod. An annotation of the pod, or kwok's PortForward
// and ClusterPortForward objects, give a port fixed HTTP responses (answer.go) or the program at a port of the server's
// machine that the administrator has listed (local.go). All other ports refuse connections at once.
//
// Connections arrive in two ways: package egress diverts connections to simulated pods (by proxies to pods and
// services, webhooks, aggregated APIs), and package kubelet forwards ports. Ports is safe for concurrent use. The
// server of fixed responses starts with its first connection. Package pod has the tests with a server.
package podport

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Ports provides the ports of all simulated pods. Use New. It is ready once its Part has started.
type Ports struct {
	cluster *cluster.Cluster
	local   map[int]bool // the ports of the server's machine that may stand for ports of pods
	answers *server
}

// New returns Ports. local are the ports of the server's machine that may stand for ports of pods.
func New(local []int) *Ports {
	p := &Ports{local: map[int]bool{}}
	for _, port := range local {
		p.local[port] = true
	}
	p.answers = newServer(p)
	return p
}

// Part connects the ports to the server.
func Part(p *Ports) part.Part {
	return part.Part{
		Name: "simulated ports",
		Handlers: func(h *part.Host) part.Handlers {
			p.cluster = cluster.Kubelets(h)
			h.Egress.Divert(p.divert)
			return part.Handlers{CustomGuards: p.guards()}
		},
		Start: func(_ context.Context, h *part.Host) error {
			h.OnStop(func() error { p.answers.close(); return nil })
			return nil
		},
	}
}

// divert is the egress.Diversion of the addresses of simulated pods.
func (p *Ports) divert(address string) egress.Dial {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil
	}
	e := p.at(to.Addr().Unmap().String())
	if e == nil {
		return nil
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		pod := &corev1.Pod{}
		if err := json.Unmarshal(e.JSON(), pod); err != nil {
			return nil, fmt.Errorf("pod %s: %w", e.Key(), err)
		}
		return p.dial(ctx, pod, to)
	}
}

// addressIndex names the index of pods by their address.
type addressIndex struct{}

func addressOf(pod *watchcache.Entry) string {
	ip, _ := pod.Field("status.podIP")
	return ip
}

// at returns the pod on a simulated node that has an address, or nil if there is none.
func (p *Ports) at(ip string) (found *watchcache.Entry) {
	nodes := p.cluster.View.Collection(cluster.Nodes.Prefix).Snapshot()
	pods := p.cluster.View.Collection(cluster.Pods.Prefix).
		SnapshotBy(watchcache.Index{Name: addressIndex{}, Value: addressOf})
	look := func(e *watchcache.Entry) bool {
		if addressOf(e) != ip || e.Unreadable() != nil {
			return true
		}
		if node, _ := e.Field("spec.nodeName"); cluster.IsSimulated(nodes.Get("", node)) {
			found = e
		}
		return found == nil
	}
	if !pods.Find(addressIndex{}, ip, "", "", look) {
		pods.Scan("", "", look)
	}
	return found
}

// Dial opens a connection to a port of a pod on a simulated node.
func (p *Ports) Dial(ctx context.Context, pod *corev1.Pod, port int) (net.Conn, error) {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return nil, fmt.Errorf("pod %s has no address", pod.Name)
	}
	return p.dial(ctx, pod, netip.AddrPortFrom(ip, uint16(port)))
}

// dial opens a connection to a port of a pod. Its errors are Go's for the same situation on a network.
func (p *Ports) dial(ctx context.Context, pod *corev1.Pod, to netip.AddrPort) (net.Conn, error) {
	fails := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	if cluster.IsDown(p.cluster.View.Collection(cluster.Nodes.Prefix).Snapshot().Get("", pod.Spec.NodeName)) {
		return nil, fails(os.ErrDeadlineExceeded)
	}
	refused := fails(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	if pod.Status.Phase != corev1.PodRunning {
		return nil, refused
	}
	stands, err := p.of(pod, int(to.Port()))
	switch {
	case err != nil:
		return nil, err
	case stands == nil:
		return nil, refused
	case stands.Local != 0:
		return p.dialLocal(ctx, pod, to, stands.Local)
	}
	return p.answers.dial(ctx, pod, to)
}

// of returns the simulated port of a pod with a number, or nil if there is none. The annotation has precedence over
// kwok's objects.
func (p *Ports) of(pod *corev1.Pod, number int) (*port, error) {
	if text, annotated := pod.Annotations[annotation]; annotated {
		all, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("annotation %s of pod %s: %w", annotation, pod.Name, err)
		}
		for i := range all {
			if all[i].is(pod, number) {
				return &all[i], nil
			}
		}
	}
	return p.forwarded(pod, number)
}

func (p *port) is(pod *corev1.Pod, number int) bool {
	if n, err := strconv.Atoi(p.Port.String()); err == nil {
		return n == number
	}
	for _, c := range pod.Spec.Containers {
		for _, named := range c.Ports {
			if named.Name == p.Port.StrVal && int(named.ContainerPort) == number {
				return true
			}
		}
	}
	return false
}
