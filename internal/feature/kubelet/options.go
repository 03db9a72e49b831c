package kubelet

import (
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
