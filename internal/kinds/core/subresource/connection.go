package subresource

import (
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// truth reads a boolean of a query, as Kubernetes' conversion does: the rule has no errors.
func truth(query url.Values, name string) (v bool) {
	values := query[name]
	_ = runtime.Convert_Slice_string_To_bool(&values, &v, nil)
	return v
}

func execOptions(query url.Values) (any, error) {
	return &corev1.PodExecOptions{
		Stdin: truth(query, "stdin"), Stdout: truth(query, "stdout"), Stderr: truth(query, "stderr"),
		TTY: truth(query, "tty"), Container: query.Get("container"), Command: query["command"],
	}, nil
}

func attachOptions(query url.Values) (any, error) {
	return &corev1.PodAttachOptions{
		Stdin: truth(query, "stdin"), Stdout: truth(query, "stdout"), Stderr: truth(query, "stderr"),
		TTY: truth(query, "tty"), Container: query.Get("container"),
	}, nil
}

func portForwardOptions(query url.Values) (any, error) {
	o, ports := &corev1.PodPortForwardOptions{}, query["ports"]
	return o, metav1.Convert_Slice_string_To_Slice_int32(&ports, &o.Ports, nil)
}

func podProxyOptions(query url.Values) (any, error) {
	return &corev1.PodProxyOptions{Path: query.Get("path")}, nil
}

func serviceProxyOptions(query url.Values) (any, error) {
	return &corev1.ServiceProxyOptions{Path: query.Get("path")}, nil
}

func nodeProxyOptions(query url.Values) (any, error) {
	return &corev1.NodeProxyOptions{Path: query.Get("path")}, nil
}

// read returns the object that a connection is about. In the path of a proxy its name may stand between a scheme and a
// port.
func read(r *http.Request, v *verb.Verbs, c *verb.Call) (*verb.Call, object.Object, error) {
	if c.Subresource == "proxy" {
		_, name, _, valid := utilnet.SplitSchemeNamePort(c.Name)
		if !valid {
			return c, nil, apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q", c.Resource.Singular, c.Name))
		}
		to := *c
		to.Name = name
		c = &to
	}
	e, err := v.Current(r.Context(), c)
	if err != nil {
		return c, nil, err
	}
	obj, err := v.Object(c, e)
	return c, obj, err
}

// servePod answers for what a kubelet would do: a pod that no node has taken has no logs and no processes, and there
// is no way to a node that has one.
func servePod(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call) error {
	c, pod, err := read(r, v, c)
	if err != nil {
		return err
	}
	node, podIP := object.String(pod, "spec", "nodeName"), object.String(pod, "status", "podIP")
	switch {
	case node == "" && c.Subresource == "log":
		w.WriteHeader(http.StatusNoContent)
		return nil
	case c.Subresource == "proxy" && podIP == "":
		return apierrors.NewBadRequest("address not allowed")
	case node == "":
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", c.Name))
	case v.View().Collection("minions").Snapshot().Get("", node) == nil:
		return apierrors.NewNotFound(c.GroupResource(), node) // "pods", as in Kubernetes
	}
	return noKubelet(node)
}

func serveService(_ http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call) error {
	c, _, err := read(r, v, c)
	if err != nil {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", c.Name))
}

func serveNode(_ http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call) error {
	c, _, err := read(r, v, c)
	if err != nil {
		return err
	}
	return noKubelet(c.Name)
}

func noKubelet(node string) error {
	return apierrors.NewInternalError(
		fmt.Errorf("error dialing backend: node %q is not served: this server has no way to kubelets", node))
}
