package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Simulation answers in the place of the kubelets of simulated nodes.
type Simulation interface {
	// Simulates reports whether a node is simulated.
	Simulates(node *watchcache.Entry) bool
	// HasPod reports whether a pod on a simulated node has an address.
	HasPod(ip string) bool
	// Log returns the log of a container on a simulated node, or the kubelet's error. It ends with ctx.
	Log(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions) (io.ReadCloser, error)
	// Exec returns the process that stands for a command in a container on a simulated node, or the kubelet's error. It
	// runs no program.
	Exec(pod *corev1.Pod, container string, command []string) (Process, error)
	// Attach returns a process with the output of a running container.
	Attach(pod *corev1.Pod, container string) (Process, error)
}

// simulates reports whether the node of an entry, which may be nil, is simulated.
func (y *connector) simulates(node *watchcache.Entry) bool {
	return node != nil && y.settings.Simulation != nil && y.settings.Simulation.Simulates(node)
}

// refusing wraps dial so that connections to pods on simulated nodes are refused at once: no host has their addresses,
// and dialing would last until the timeout of the request.
func (y *connector) refusing(dial egress.Dial) egress.Dial {
	if y.settings.Simulation == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !y.settings.Simulation.HasPod(to.Addr().String()) {
			return dial(ctx, network, address)
		}
		return nil, &net.OpError{
			Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to),
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
		}
	}
}

// simulatedLog answers for a container on a simulated node, and reports whether the node is simulated.
func (y *connector) simulatedLog(
	w http.ResponseWriter, r *http.Request, v *verb.Verbs, ask *logRequest,
) (answered bool, err error) {
	if y.settings.Simulation == nil {
		return false, nil
	}
	node, err := current(r.Context(), v, ref.Nodes.Prefix, "", ask.pod.Spec.NodeName)
	if err != nil || !y.simulates(node) {
		return false, err
	}
	log, err := y.settings.Simulation.Log(r.Context(), ask.pod, ask.container, ask.options)
	if err != nil {
		return true, err
	}
	defer log.Close()
	sendLog(w, r, log, ask.options.Follow)
	return true, nil
}

// simulatedProcess returns the process for an exec or attach in a container, and nil if its node is not simulated.
func (y *connector) simulatedProcess(
	ctx context.Context, v *verb.Verbs, pod *corev1.Pod, container string, command []string,
) (Process, error) {
	if y.settings.Simulation == nil || pod.Spec.NodeName == "" {
		return nil, nil
	}
	node, err := current(ctx, v, ref.Nodes.Prefix, "", pod.Spec.NodeName)
	if err != nil || !y.simulates(node) {
		return nil, err
	}
	if command == nil {
		return y.settings.Simulation.Attach(pod, container)
	}
	return y.settings.Simulation.Exec(pod, container, command)
}

// errSimulated is the error of a request to a simulated node.
func errSimulated(node string) error {
	return apierrors.NewBadRequest(fmt.Sprintf(
		"node %s is simulated: it runs no containers, so nothing listens on its ports", node))
}
