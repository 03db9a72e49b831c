package core

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func nodeKind() rule.Kind {
	return rule.Of[corev1.Node](rule.Kind{
		Group: coreV1, Kind: "Node", Plural: "nodes", Short: []string{"no"}, ClusterScoped: true, Prefix: "minions",
		Status:       true,
		Subresources: []catalog.Subresource{rule.Connection("proxy", "NodeProxyOptions", proxied...)},
		Strategy: &catalog.Strategy{
			Cells:               rule.Printed(nodeCells),
			Default:             defaultNode,
			PrepareUpdate:       prepareNodeUpdate,
			PrepareCreate:       prepareNodeCreate,
			UnconditionalUpdate: true,
			FieldLabels: map[string]func(object.Object) string{
				"spec.unschedulable": rule.TruthAt("spec", "unschedulable"),
			},
		},
		Warn: warnNode,
	})
}

// defaultNode sets the allocatable resources of a node, and the field for its first pod CIDR.
func defaultNode(obj object.Object) {
	defaultNodeStatus(obj)
	if spec := object.Map(obj, "spec"); spec != nil {
		ranges, _ := spec["podCIDRs"].([]any)
		switch first := object.String(spec, "podCIDR"); {
		case first != "" && (len(ranges) == 0 || ranges[0] != first):
			spec["podCIDRs"] = []any{first}
		case first == "" && len(ranges) > 0:
			spec["podCIDR"] = ranges[0]
		}
	}
}

// prepareNodeCreate keeps the status, with which kubelets create their nodes, but drops the obsolete configSource.
func prepareNodeCreate(obj object.Object, _ catalog.Env) {
	delete(object.Map(obj, "spec"), "configSource")
	delete(object.Map(obj, "status"), "config")
}

func prepareNodeUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	if subresource != "status" {
		if object.Map(old, "spec")["configSource"] == nil {
			delete(object.Map(obj, "spec"), "configSource")
		}
		rule.Keep(obj, old, "status")
		return
	}
	rule.Keep(obj, old, "spec")
	if object.Map(old, "status")["config"] == nil {
		delete(object.Child(obj, "status"), "config")
	}
}

// defaultNodeStatus defaults allocatable to capacity.
func defaultNodeStatus(obj object.Object) {
	status, _ := obj["status"].(map[string]any)
	pod.RoundUp(status, "capacity", "allocatable")
	if capacity, ok := status["capacity"].(map[string]any); ok && status["allocatable"] == nil {
		status["allocatable"] = maps.Clone(capacity)
	}
}

func warnNode(w *rule.Warnings) {
	spec := object.Map(w.Obj, "spec")
	if spec["configSource"] != nil {
		w.Addf(field.NewPath("spec", "configSource"), "the feature is removed")
	}
	if object.String(spec, "externalID") != "" {
		w.Addf(field.NewPath("spec", "externalID"), "this field is deprecated, and is unused by Kubernetes")
	}
	for i, cidr := range rule.Strings(spec["podCIDRs"]) {
		w.CIDR(field.NewPath("spec", "podCIDRs").Index(i), cidr)
	}
}

// nodeFunctions are the functions that node.txt names.
func nodeFunctions() rule.Functions {
	return rule.Functions{
		"node":       node,
		"nodeUpdate": nodeUpdate,
	}
}
