package scheduling

import (
	"fmt"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func priorityClassKind() rule.Kind {
	return rule.Of[schedulingv1.PriorityClass](rule.Kind{
		Group: schedulingV1, Kind: "PriorityClass", Plural: "priorityclasses", Short: []string{"pc"},
		ClusterScoped: true, Generation: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(priorityClassCells), PrepareUpdate: keepGeneration, Keep: keepSystemClass,
			VisibleOnReturn: true, UnconditionalUpdate: true,
		},
	})
}

func priorityClassCells(c *schedulingv1.PriorityClass, e catalog.Env) []any {
	return []any{c.Name, int64(c.Value), c.GlobalDefault, rule.Ago(c.CreationTimestamp, e),
		string(rule.Deref(c.PreemptionPolicy, ""))}
}

// keepGeneration is the PrepareUpdate rule of a kind with a constant generation.
func keepGeneration(object.Object, object.Object, string, catalog.Env) {}

var schedulingV1 = rule.Group{Name: "scheduling.k8s.io", Version: "v1", Priority: 16600, Rank: 15}

// keepSystemClass rejects the deletion of the system priority classes, which every cluster needs.
func keepSystemClass(name string) string {
	if _, system := SystemPriority(name); system {
		return "this is a system priority class and cannot be deleted"
	}
	return ""
}

// highestPriority is the highest that users may define; the system's own classes are above.
const highestPriority = 1_000_000_000

// SystemPriority returns the value of a system PriorityClass, false if there is no such class.
func SystemPriority(name string) (int64, bool) {
	switch name {
	case "system-node-critical":
		return 2*highestPriority + 1000, true
	case "system-cluster-critical":
		return 2 * highestPriority, true
	}
	return 0, false
}

func priorityClass(val *rule.Validation, p rule.Value) {
	name := object.String(object.Map(val.Obj, "metadata"), "name")
	value, _ := object.Int(val.Obj, "value")
	if !strings.HasPrefix(name, "system-") {
		if value > highestPriority {
			val.Forbidden(field.NewPath("value"),
				fmt.Sprintf("maximum allowed value of a user defined priority is %v", highestPriority))
		}
		return
	}
	why := ""
	switch want, ok := SystemPriority(name); {
	case !ok:
		why = fmt.Sprintf("%v is not a known system priority class", name)
	case value != want:
		why = fmt.Sprintf("value of %v PriorityClass must be %v", name, want)
	case object.True(val.Obj, "globalDefault"):
		why = fmt.Sprintf("globalDefault of %v PriorityClass must be %v", name, false)
	}
	if why != "" {
		val.Forbidden(field.NewPath("metadata", "name"),
			"priority class names with 'system-' prefix are reserved for system use only. error: "+why)
	}
}

func priorityValue(val *rule.Validation, _ rule.Value) {
	if !rule.Equivalent(val.Obj["value"], val.Old["value"]) {
		val.Forbidden(field.NewPath("value"), "may not be changed in an update.")
	}
}

// priorityClassFunctions are the functions that priority_class.txt names.
func priorityClassFunctions() rule.Functions {
	return rule.Functions{
		"priorityClass": priorityClass,
		"priorityValue": priorityValue,
	}
}
