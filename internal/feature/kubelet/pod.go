package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// decode reads a stored object of a built-in kind.
func decode(e *watchcache.Entry, into any) error {
	if err := e.Unreadable(); err != nil {
		return err
	}
	if err := json.Unmarshal(e.JSON(), into); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%s cannot be read: %w", e.Name, err))
	}
	return nil
}

// named returns the call about the object in a proxy's path, where the name may stand between a scheme and a port.
func named(c *verb.Call) (about *verb.Call, scheme, port string, err error) {
	scheme, name, port, valid := utilnet.SplitSchemeNamePort(c.Name)
	if !valid {
		return nil, "", "", apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q", c.Resource.Singular, c.Name))
	}
	return c.Named(c.Namespace, name), scheme, port, nil
}

// pod returns the pod that the call is about.
func (y *connector) pod(r *http.Request, v *verb.Verbs, c *verb.Call) (*corev1.Pod, error) {
	e, err := v.Current(r.Context(), c)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	return pod, decode(e, pod)
}

// container returns the requested container, or the only one.
func container(requested string, pod *corev1.Pod) (string, error) {
	var names []string
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	if requested != "" {
		for _, name := range names {
			if name == requested {
				return requested, nil
			}
		}
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", requested, pod.Name))
	}
	switch len(pod.Spec.Containers) {
	case 1:
		return pod.Spec.Containers[0].Name, nil
	case 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s", pod.Name))
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s",
		pod.Name, names))
}

// kubelet returns where the kubelet of a pod is. A pod that no node has taken has none.
func (y *connector) kubelet(ctx context.Context, v *verb.Verbs, c *verb.Call, pod *corev1.Pod) (*endpoint, error) {
	if pod.Spec.NodeName == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	return y.node(ctx, v, c, pod.Spec.NodeName)
}
