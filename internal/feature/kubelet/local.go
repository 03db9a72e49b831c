package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Local answers for pods that are programs on the machines of clients.
type Local interface {
	// Is reports whether a pod is such a program.
	Is(pod *corev1.Pod) bool
	// Log returns the output of the program. It ends with ctx.
	Log(ctx context.Context, pod *corev1.Pod, o *corev1.PodLogOptions) (io.ReadCloser, error)
	// Dial opens a connection to a port of the program.
	Dial(ctx context.Context, pod *corev1.Pod, port int) (net.Conn, error)
}

func (y *connector) isLocal(pod *corev1.Pod) bool {
	return y.settings.Local != nil && y.settings.Local.Is(pod)
}

// localLog answers with the output of a local program.
func (y *connector) localLog(w http.ResponseWriter, r *http.Request, ask *logRequest) error {
	log, err := y.settings.Local.Log(r.Context(), ask.pod, ask.options)
	if err != nil {
		return err
	}
	defer log.Close()
	sendLog(w, r, log, ask.options.Follow)
	return nil
}

// errLocal is the error of exec and attach: nobody but its user runs commands on the machine of a local program.
func errLocal(pod string) error {
	return apierrors.NewBadRequest(fmt.Sprintf(
		"pod %s is a program on the machine of a user: it runs no commands for the server", pod))
}
