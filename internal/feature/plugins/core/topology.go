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

// topologyLabels are the labels that are copied from the node, overriding the pod's.
var topologyLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// PodTopology sets the zone and region labels of a pod from its node, when the pod is bound to the node or created on
// it. A missing node has no labels.
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

// addTopology adds the labels of a node to a pod, or to a binding, which sets them on the pod.
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
