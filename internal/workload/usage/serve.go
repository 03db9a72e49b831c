// Package usage serves the usage of simulated pods (package measure) as the API metrics.k8s.io/v1beta1.
//
// The objects are computed at each read (verb.Finder).
package usage

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/extension"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/measure"
)

// group is that of the API.
const group = "metrics.k8s.io"

//go:embed nodes.yaml
var nodesDefinition []byte

//go:embed pods.yaml
var podsDefinition []byte

// Part brings the API.
func Part() part.Part {
	return part.Part{
		Name: "usage",
		Resources: func(h *part.Host, resources []*catalog.Resource) []*catalog.Resource {
			for _, definition := range [][]byte{nodesDefinition, podsDefinition} {
				r, err := read(definition)
				if err != nil {
					h.Log.Error("a definition of the program cannot be read", "error", err) // a test excludes it
					continue
				}
				resources = append(resources, r)
			}
			return resources
		},
		Handlers: func(h *part.Host) part.Handlers {
			m := &meter{cluster.Kubelets(h)}
			return part.Handlers{Finders: map[string]verb.Finder{
				"nodes." + group: m.nodes, "pods." + group: m.pods,
			}}
		},
	}
}

// read returns the resource of a definition. Its objects are not stored.
func read(definition []byte) (*catalog.Resource, error) {
	k := extension.Kind{ReadOnly: true}
	if err := yaml.Unmarshal(definition, &k.Definition); err != nil {
		return nil, err
	}
	r, err := k.Resource()
	if err != nil {
		return nil, err
	}
	r.Virtual, r.Prefix, r.NoGeneration, r.Verbs = true, "", true, []string{"get", "list"}
	return r, nil
}

// meter computes the usage at each read.
type meter struct{ *cluster.Cluster }

func (m *meter) pods(ctx context.Context, namespace, name string) ([]object.Object, error) {
	if _, err := m.View.Fresh(ctx); err != nil {
		return nil, err
	}
	if name != "" {
		if pod := cluster.Pods.Get(m.Cluster, namespace, name); pod != nil {
			if used := m.measured(pod); len(used) > 0 {
				return []object.Object{m.podMetrics(pod, used)}, nil
			}
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: "podmetrics"},
			namespace+"/"+name)
	}
	out := []object.Object{}
	m.each(namespace, func(pod *corev1.Pod, used []measure.Container) { out = append(out, m.podMetrics(pod, used)) })
	return out, nil
}

// each calls f with each pod in a namespace that has known usage; "" means all namespaces.
func (m *meter) each(namespace string, f func(pod *corev1.Pod, used []measure.Container)) {
	m.View.Collection(cluster.Pods.Prefix).Snapshot().Scan(namespace, "", func(e *watchcache.Entry) bool {
		if pod := cluster.Pods.Decode(m.Cluster, e); pod != nil {
			if used := m.measured(pod); len(used) > 0 {
				f(pod, used)
			}
		}
		return true
	})
}

// measured returns the usage of a pod's containers, or nil if its node is not measured.
func (m *meter) measured(pod *corev1.Pod) []measure.Container {
	if !m.IsMeasured(pod.Spec.NodeName) {
		return nil
	}
	return measure.OfPod(pod)
}

func (m *meter) podMetrics(pod *corev1.Pod, used []measure.Container) object.Object {
	out := m.metrics(pod.Namespace, pod.Name, pod.Labels)
	containers := make([]any, len(used))
	for i, one := range used {
		containers[i] = object.Object{"name": one.Name, "usage": usage(one.Usage)}
	}
	out["containers"] = containers
	return out
}

func (m *meter) nodes(ctx context.Context, _, name string) ([]object.Object, error) {
	if _, err := m.View.Fresh(ctx); err != nil {
		return nil, err
	}
	by := map[string][]measure.Container{}
	m.each("", func(pod *corev1.Pod, used []measure.Container) {
		by[pod.Spec.NodeName] = append(by[pod.Spec.NodeName], used...)
	})
	out := []object.Object{}
	m.View.Collection(cluster.Nodes.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if (name == "" || e.Name == name) && cluster.IsSimulated(e) && !cluster.IsDown(e) {
			one := m.metrics("", e.Name, e.Labels)
			one["usage"] = usage(measure.Sum(by[e.Name]))
			out = append(out, one)
		}
		return true
	})
	if name != "" && len(out) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: "nodemetrics"}, name)
	}
	return out, nil
}

// metrics returns the fields common to both kinds of metrics.
func (m *meter) metrics(namespace, name string, labels map[string]string) object.Object {
	now := m.Now().UTC().Format(time.RFC3339)
	meta := object.Object{"name": name, "creationTimestamp": now}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	if len(labels) > 0 {
		all := object.Object{}
		for k, v := range labels {
			all[k] = v
		}
		meta["labels"] = all
	}
	return object.Object{"metadata": meta, "timestamp": now, "window": fmt.Sprint(measure.Window)}
}

func usage(list corev1.ResourceList) object.Object {
	return object.Object{
		"cpu":    list.Cpu().String(),
		"memory": list.Memory().String(),
	}
}
