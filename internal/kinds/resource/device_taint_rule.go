package resource

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func deviceTaintRuleKind() rule.Kind {
	return rule.Of[resourcev1.DeviceTaintRule](rule.Kind{
		Group: resourceV1, Kind: "DeviceTaintRule", Plural: "devicetaintrules",
		ClusterScoped: true, Status: true, StatusOnly: true, Generation: true,
		Also: lenient(slices.Concat(rule.OnDemand[resourcev1beta2.DeviceTaintRule](resourceV1beta2),
			rule.OnDemand[resourcev1alpha3.DeviceTaintRule](resourceV1alpha3))),
		Form: rule.StoredAs("resource.k8s.io", "v1", "v1beta2"),
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(deviceTaintRuleCells),
			PrepareCreate: func(obj object.Object, e catalog.Env) {
				rule.ResetStatus[resourcev1.DeviceTaintRule](obj)
				dateTaint(obj, e)
			},
			PrepareUpdate: prepareTaintRuleUpdate,
		},
	})
}

// lenient makes the older versions of rules lenient.
func lenient(versions []*rule.Version) []*rule.Version {
	for _, v := range versions {
		v.Lenient = true
	}
	return versions
}

func deviceTaintRuleCells(r *resourcev1.DeviceTaintRule, e catalog.Env) []any {
	added := ""
	if at := r.Spec.Taint.TimeAdded; at != nil {
		added = rule.Ago(*at, e)
	}
	return []any{r.Name, r.Spec.Taint.Key, r.Spec.Taint.Value, string(r.Spec.Taint.Effect), added,
		rule.Ago(r.CreationTimestamp, e)}
}

// dateTaint sets the time of a taint without one.
func dateTaint(obj object.Object, e catalog.Env) {
	rule.SetDefault(object.Child(object.Child(obj, "spec"), "taint"), "timeAdded", rule.Stamp(e.Now))
}

// prepareTaintRuleUpdate sets a new time of the taint if a client changes its effect without the time.
func prepareTaintRuleUpdate(obj, old object.Object, subresource string, e catalog.Env) {
	if subresource == "status" {
		status := obj["status"]
		rule.KeepAll(obj, old)
		obj["status"] = status
		return
	}
	dateTaint(obj, e)
	taint, was := object.Map(obj, "spec", "taint"), object.Map(old, "spec", "taint")
	if taint["effect"] != was["effect"] && taint["timeAdded"] == was["timeAdded"] {
		taint["timeAdded"] = rule.Stamp(e.Now)
	}
	rule.Keep(obj, old, "status")
	rule.CountChange(obj, old)
}

// mostTaintConditions is how many conditions the status of a rule may have.
const mostTaintConditions = 8

func taintConditions(val *rule.Validation, _ rule.Value) {
	conditions := rule.As[[]metav1.Condition](object.Map(val.Obj, "status")["conditions"])
	path := field.NewPath("status", "conditions")
	val.Errs = append(val.Errs, unversioned.ValidateConditions(conditions, path)...)
	if len(conditions) > mostTaintConditions {
		val.Add(field.TooMany(path, len(conditions), mostTaintConditions))
	}
}

// ruleTaint validates the taint of a rule. An unchanged effect is always accepted.
func ruleTaint(val *rule.Validation, p rule.Value) {
	before := len(val.Errs)
	val.Block("DeviceTaint", p.Object(), nil, p.Path)
	if val.Old == nil || object.String(val.Old, "spec", "taint", "effect") != object.String(p.Object(), "effect") {
		return
	}
	kept := val.Errs[:before]
	for _, e := range val.Errs[before:] {
		if e.Field != p.Path.Child("effect").String() {
			kept = append(kept, e)
		}
	}
	val.Errs = kept
}

// taintSelector validates the device selector of a rule. Given fields must not be empty.
func taintSelector(val *rule.Validation, p rule.Value) {
	selector := p.Object()
	for _, part := range []struct {
		name  string
		check rule.Function
	}{
		{"driver", rule.DriverName}, {"pool", poolName},
		{"device", func(val *rule.Validation, p rule.Value) {
			name, _ := p.New.(string)
			val.Invalids(p.Path, name, validation.IsDNS1123Label(name))
		}},
	} {
		if v := selector[part.name]; v != nil {
			part.check(val, rule.Value{New: v, Path: p.Path.Child(part.name)})
		}
	}
}

// deviceTaintRuleFunctions are the functions that device_taint_rule.txt names.
func deviceTaintRuleFunctions() rule.Functions {
	return rule.Functions{
		"ruleTaint":       ruleTaint,
		"taintConditions": taintConditions,
		"taintSelector":   taintSelector,
	}
}
