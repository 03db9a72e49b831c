package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Simulation answers in the place of the kubelets of simulated nodes.
type Simulation interface {
	// Simulates reports whether a node is simulated.
	Simulates(node *watchcache.Entry) bool
	// Log returns the log of a container on a simulated node, or the kubelet's error. It ends with ctx.
	Log(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions) (io.ReadCloser, error)
	// Exec returns the process that stands for a command in a container on a simulated node, or the kubelet's error. It
	// runs no program.
	Exec(pod *corev1.Pod, container string, command []string) (Process, error)
	// Attach returns a process with the output of a running container.
	Attach(pod *corev1.Pod, container string) (Process, error)
	// Dial opens a connection to what stands for a port of a pod on a simulated node.
	Dial(ctx context.Context, pod *corev1.Pod, port int) (net.Conn, error)
}

// simulates reports whether the node of an entry, which may be nil, is simulated.
func (y *connector) simulates(node *watchcache.Entry) bool {
	return node != nil && y.settings.Simulation != nil && y.settings.Simulation.Simulates(node)
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

// isSimulated reports whether the node of a pod is simulated.
func (y *connector) isSimulated(ctx context.Context, v *verb.Verbs, pod *corev1.Pod) (bool, error) {
	if y.settings.Simulation == nil || pod.Spec.NodeName == "" {
		return false, nil
	}
	node, err := current(ctx, v, ref.Nodes.Prefix, "", pod.Spec.NodeName)
	return err == nil && y.simulates(node), err
}

// simulatedProcess returns the process for an exec or attach in a container, and nil if its node is not simulated.
func (y *connector) simulatedProcess(
	ctx context.Context, v *verb.Verbs, pod *corev1.Pod, container string, command []string,
) (Process, error) {
	if simulated, err := y.isSimulated(ctx, v, pod); err != nil || !simulated {
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
