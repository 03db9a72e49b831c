package node

import (
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func runtimeClassKind() rule.Kind {
	return rule.Of[nodev1.RuntimeClass](rule.Kind{
		Group: nodeV1, Kind: "RuntimeClass", AnyFinalizer: true, Plural: "runtimeclasses", ClusterScoped: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(runtimeClassCells), VisibleOnReturn: true, CreateOnUpdate: true,
		},
		Warn: warnRuntimeClass,
	})
}

func runtimeClassCells(c *nodev1.RuntimeClass, e catalog.Env) []any {
	return []any{c.Name, c.Handler, rule.Ago(c.CreationTimestamp, e)}
}

var nodeV1 = rule.Group{Name: "node.k8s.io", Version: "v1", Priority: 16300, Rank: 15}

func warnRuntimeClass(w *rule.Warnings) {
	for _, key := range object.Keys(object.Map(w.Obj, "scheduling", "nodeSelector")) {
		if text := pod.OldNodeLabels[key]; text != "" {
			w.Addf(field.NewPath("scheduling", "nodeSelector"), "%s", text)
		}
	}
}

// tolerationsOnce requires unique tolerations, whatever their duration.
func tolerationsOnce(val *rule.Validation, p rule.Value) {
	seen := map[[4]string]bool{}
	for i, t := range rule.Objects(p.New) {
		pod.CheckToleration(val, t, p.Path.Index(i))
		key := [4]string{object.String(t, "key"), object.String(t, "operator"), object.String(t, "value"),
			object.String(t, "effect")}
		if seen[key] {
			val.Duplicate(p.Path.Index(i), t)
		}
		seen[key] = true
	}
}

// podFixed validates the overhead of a class.
func podFixed(val *rule.Validation, p rule.Value) {
	if p.New != nil {
		pod.CheckRequirements(val, object.Object{"limits": p.Object()["podFixed"]}, p.Path,
			func(name string, path *field.Path) { pod.CheckContainerResource(val, name, path) })
	}
}

// runtimeClassFunctions are the functions that runtime_class.txt names.
func runtimeClassFunctions() rule.Functions {
	return rule.Functions{
		"podFixed":        podFixed,
		"tolerationsOnce": tolerationsOnce,
	}
}
