package pod

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// Total returns the maximum total of "requests" or "limits" of a pod's containers: the larger of the sum of concurrent
// containers, and of each initialization step with the sidecars running by then. Source: KEP-753.
func Total(spec object.Object, list string) map[string]resource.Quantity {
	total, sidecars, steps := map[string]resource.Quantity{}, map[string]resource.Quantity{},
		map[string]resource.Quantity{}
	for _, c := range rule.Objects(spec["containers"]) {
		addAll(total, Amounts(c, list))
	}
	for _, c := range rule.Objects(spec["initContainers"]) {
		own := Amounts(c, list)
		if object.String(c, "restartPolicy") == "Always" {
			addAll(total, own)
			addAll(sidecars, own)
			largest(steps, sidecars)
			continue
		}
		addAll(own, sidecars)
		largest(steps, own)
	}
	largest(total, steps)
	return total
}

// Amounts returns obj.resources.requests or limits, as list selects.
func Amounts(obj object.Object, list string) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for name, v := range object.Map(obj, "resources", list) {
		out[name] = rule.Quantity(v)
	}
	return out
}

// Overhead returns the overhead in a pod spec.
func Overhead(spec object.Object) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for name, v := range object.Map(spec, "overhead") {
		out[name] = rule.Quantity(v)
	}
	return out
}

func addAll(to, from map[string]resource.Quantity) {
	for name, q := range from {
		sum := to[name].DeepCopy()
		quantity.Add(&sum, q)
		to[name] = sum
	}
}

func largest(to, from map[string]resource.Quantity) {
	for name, q := range from {
		if have, ok := to[name]; !ok || quantity.Cmp(q, have) > 0 {
			to[name] = q.DeepCopy()
		}
	}
}
