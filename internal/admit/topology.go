package admit

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Topology gives a pod the labels that say in which zone and region its node is, when the pod is bound to the node or
// made on it. It is kube's PodTopologyLabels. A node that is not there has no labels.
type Topology struct {
	View *watchcache.View
}

var _ Mutator = Topology{}

// topologyLabels are the labels that come from the node, whatever the pod has.
var topologyLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// Name returns kube's name for the plugin.
func (Topology) Name() string { return "PodTopologyLabels" }

// Mutate adds the labels to a new pod that says its node, or to the binding, which hands them on to the pod.
func (p Topology) Mutate(_ context.Context, a *Attributes) error {
	if a.Operation != Create || a.Resource.Group != "" || a.Resource.Plural != "pods" {
		return nil
	}
	var node string
	switch a.Subresource {
	case "":
		spec, _ := a.Object["spec"].(Object)
		node, _ = spec["nodeName"].(string)
	case "binding":
		target, _ := a.Object["target"].(Object)
		if target["kind"] == "Node" {
			node, _ = target["name"].(string)
		}
	}
	if node == "" {
		return nil
	}
	e := p.View.Collection("minions").Snapshot().Get("", node)
	if e == nil {
		return nil
	}
	add := Object{}
	for _, name := range topologyLabels {
		if v, ok := e.Labels[name]; ok {
			add[name] = v
		}
	}
	if len(add) == 0 {
		return nil
	}
	maps.Copy(a.Edit("metadata", "labels"), add)
	return nil
}
