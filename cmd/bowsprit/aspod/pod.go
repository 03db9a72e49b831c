package aspod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// pod is the pod that a process stands for.
type pod struct {
	namespace, name string
	target          target
	uid             string // "" without a route: there is no such object then
	template        corev1.PodTemplateSpec
	container       corev1.Container
	host, port      string // of the API server
	ca              []byte // PEM, of the API server
	tokens          map[string]token
}

// target names a workload, as in "deployment/NAME".
type target struct{ kind, name string }

// parseTarget parses the value of --as-pod.
func parseTarget(text string) (target, error) {
	kind, name, ok := strings.Cut(text, "/")
	t := target{kind: strings.ToLower(kind), name: name}
	for full, names := range kindNames {
		if slices.Contains(names, t.kind) {
			t.kind = full
		}
	}
	if _, known := kindNames[t.kind]; !ok || name == "" || strings.Contains(name, "/") || !known {
		return t, fmt.Errorf("--as-pod %q is not a workload: use deployment/NAME, statefulset/NAME or daemonset/NAME",
			text)
	}
	return t, nil
}

// kindNames are the kinds of workloads with their other names.
var kindNames = map[string][]string{
	"deployment":  {"deployments", "deploy", "deployment.apps", "deployments.apps"},
	"statefulset": {"statefulsets", "sts", "statefulset.apps", "statefulsets.apps"},
	"daemonset":   {"daemonsets", "ds", "daemonset.apps", "daemonsets.apps"},
}

// find reads the workload and returns the pod that its template describes. container selects a container; "" stands
// for the only one, or for the one of the template's annotation.
func find(
	ctx context.Context, client kubernetes.Interface, namespace string, t target, container string,
) (*pod, error) {
	template, err := templateOf(ctx, client, namespace, t)
	if err != nil {
		return nil, fmt.Errorf("%s/%s in namespace %s: %w", t.kind, t.name, namespace, err)
	}
	p := &pod{
		namespace: namespace, name: t.name + "-as-pod", target: t, template: template, tokens: map[string]token{},
	}
	if container == "" {
		container = template.Annotations[defaultContainer]
	}
	containers := template.Spec.Containers
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == container })
	switch {
	case container == "" && len(containers) == 1:
		at = 0
	case at < 0:
		var names []string
		for _, c := range containers {
			names = append(names, c.Name)
		}
		return nil, fmt.Errorf("%s/%s has the containers %s: select one with --container", t.kind, t.name,
			strings.Join(names, ", "))
	}
	p.container = containers[at]
	return p, nil
}

// defaultContainer is the annotation by which kubectl selects a container.
const defaultContainer = "kubectl.kubernetes.io/default-container"

func templateOf(ctx context.Context, client kubernetes.Interface, namespace string, t target) (
	template corev1.PodTemplateSpec, err error,
) {
	apps, options := client.AppsV1(), metav1.GetOptions{}
	switch t.kind {
	case "deployment":
		o, err := apps.Deployments(namespace).Get(ctx, t.name, options)
		if err != nil {
			return template, err
		}
		return o.Spec.Template, nil
	case "statefulset":
		o, err := apps.StatefulSets(namespace).Get(ctx, t.name, options)
		if err != nil {
			return template, err
		}
		return o.Spec.Template, nil
	case "daemonset":
		o, err := apps.DaemonSets(namespace).Get(ctx, t.name, options)
		if err != nil {
			return template, err
		}
		return o.Spec.Template, nil
	}
	return template, errors.New("its kind has no pods")
}

// account returns the name of the pod's ServiceAccount.
func (p *pod) account() string {
	if name := p.template.Spec.ServiceAccountName; name != "" {
		return name
	}
	return "default"
}

// field returns a field of the pod by its path in the downward API.
func (p *pod) field(path string) (string, error) {
	for prefix, values := range map[string]map[string]string{
		"metadata.labels": p.template.Labels, "metadata.annotations": p.template.Annotations,
	} {
		if key, ok := strings.CutPrefix(path, prefix+"['"); ok {
			return values[strings.TrimSuffix(key, "']")], nil
		}
		if path == prefix {
			return lines(values), nil
		}
	}
	switch path {
	case "metadata.name":
		return p.name, nil
	case "metadata.namespace":
		return p.namespace, nil
	case "metadata.uid":
		return p.uid, nil
	case "spec.serviceAccountName":
		return p.account(), nil
	case "spec.nodeName":
		return p.template.Spec.NodeName, nil
	case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
		return "127.0.0.1", nil
	}
	return "", fmt.Errorf("the field %s is unknown", path)
}

// lines returns labels or annotations as the downward API writes them.
func lines(values map[string]string) string {
	var all []string
	for key, value := range values {
		all = append(all, fmt.Sprintf("%s=%q", key, value))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
