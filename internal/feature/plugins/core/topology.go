package core

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// topologyLabels are the labels that come from the node, whatever the pod has.
var topologyLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// PodTopology gives a pod the labels that say in which zone and region its node is, when the pod is bound to the node
// or created on it. A node that is not there has no labels.
func PodTopology(c plugin.Config) []plugin.Rule {
	return []plugin.Rule{
		{Plural: "pods", Operations: plugin.Creates, Mutate: func(_ context.Context, a *admit.Attributes) error {
			spec, _ := a.Object["spec"].(object)
			node, _ := spec["nodeName"].(string)
			addTopology(c.View, a, node)
			return nil
		}},
		{Plural: "pods", Subresource: "binding", Operations: plugin.Creates,
			Mutate: func(_ context.Context, a *admit.Attributes) error {
				target, _ := a.Object["target"].(object)
				if target["kind"] == "Node" {
					node, _ := target["name"].(string)
					addTopology(c.View, a, node)
				}
				return nil
			}},
	}
}

// addTopology adds the labels of a node to a pod, or to the binding, which hands them on to the pod.
func addTopology(view *watchcache.View, a *admit.Attributes, node string) {
	if node == "" {
		return
	}
	e := view.Collection(ref.Nodes.Prefix).Snapshot().Get("", node)
	if e == nil {
		return
	}
	add := object{}
	for _, name := range topologyLabels {
		if v, ok := e.Labels[name]; ok {
			add[name] = v
		}
	}
	if len(add) > 0 {
		maps.Copy(a.Edit("metadata", "labels"), add)
	}
}
