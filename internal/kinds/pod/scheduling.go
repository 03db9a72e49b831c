package pod

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

const affinityValues rule.Exception = "affinity to pods selects by possible labels"

const nodeValues rule.Exception = "affinity to nodes selects by possible labels"

const spreadSelector rule.Exception = "the selector of a spread constraint is valid"

const keysBeside rule.Exception = "the keys of a spread constraint add to its selector"

// Comparing is the rule that tolerations do not compare numbers (KEP-5471), which a feature lifts.
const Comparing rule.Exception = "tolerations do not compare"

// labelValues validates the values that a label of a node may have.
func labelValues(val *rule.Validation, p rule.Value) {
	for i, v := range rule.Strings(p.New) {
		if wrong := validation.IsValidLabelValue(v); len(wrong) > 0 && !val.Excused(nodeValues) {
			val.Invalids(p.Path.Index(i), v, wrong)
		}
	}
}

// CheckToleration checks a toleration of a pod.
func CheckToleration(val *rule.Validation, t object.Object, path *field.Path) {
	key, op, value, effect := object.String(t, "key"), object.String(t, "operator"), object.String(t, "value"),
		object.String(t, "effect")
	if key != "" {
		val.Invalids(path.Child("key"), key, validation.IsQualifiedName(key))
	}
	if key == "" && op != "Exists" {
		val.Invalid(path.Child("operator"), op,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
	}
	if t["tolerationSeconds"] != nil && effect != "NoExecute" {
		val.Invalid(path.Child("effect"), effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
	}
	switch op {
	case "Equal", "":
		if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
			val.Invalid(path.Child("operator"), value, strings.Join(wrong, ";"))
		}
	case "Exists":
		if value != "" {
			val.Invalid(path.Child("operator"), value, "value must be empty when `operator` is 'Exists'")
		}
	case "Lt", "Gt":
		if !val.Excused(Comparing) {
			val.Unsupported(path.Child("operator"), op, "Equal", "Exists", "Lt", "Gt")
			break
		}
		val.Invalids(path.Child("value"), value, content.IsDecimalInteger(value))
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			val.Invalid(path.Child("value"), value, err.Error())
		}
	default:
		val.Unsupported(path.Child("operator"), op, "Equal", "Exists")
	}
	if effect != "" {
		CheckTaintEffect(val, effect, path.Child("effect"))
	}
}

// CheckTaintEffect checks the effect of a taint, or of a toleration that names one.
func CheckTaintEffect(val *rule.Validation, effect string, path *field.Path) {
	if effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute" {
		val.Unsupported(path, effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
	}
}

// nodeExpression validates a requirement about the labels of a node.
func nodeExpression(val *rule.Validation, p rule.Value) {
	r := p.Object()
	n := len(rule.Strings(r["values"]))
	switch path := p.Path.Child("values"); object.String(r, "operator") {
	case "In", "NotIn":
		if n == 0 {
			val.Required(path, "must be specified when `operator` is 'In' or 'NotIn'")
		}
	case "Exists", "DoesNotExist":
		if n > 0 {
			val.Forbidden(path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
		}
	case "Gt", "Lt":
		if n != 1 {
			val.Required(path, "must be specified single value when `operator` is 'Lt' or 'Gt'")
		}
	default:
		val.Invalid(p.Path.Child("operator"), object.String(r, "operator"), "not a valid selector operator")
	}
	key := object.String(r, "key")
	val.Invalids(p.Path.Child("key"), key, validation.IsQualifiedName(key))
}

// nodeField validates a requirement on the only supported field of a node, its name.
func nodeField(val *rule.Validation, p rule.Value) {
	r := p.Object()
	values := rule.Strings(r["values"])
	switch op := object.String(r, "operator"); op {
	case "In", "NotIn":
		if len(values) != 1 {
			val.Required(p.Path.Child("values"),
				"must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
		}
	default:
		val.Invalid(p.Path.Child("operator"), op, "not a valid selector operator")
	}
	if key := object.String(r, "key"); key != "metadata.name" {
		val.Invalid(p.Path.Child("key"), key, "not a valid field selector key")
		return
	}
	for i, v := range values {
		val.Invalids(p.Path.Child("values").Index(i), v, validation.IsDNS1123Subdomain(v))
	}
}

func affinityNamespaces(val *rule.Validation, p rule.Value) {
	for _, name := range rule.Strings(p.Object()["namespaces"]) {
		val.Invalids(p.Path.Child("namespace"), name, validation.IsDNS1123Label(name))
	}
}

// matchKeys validates matchLabelKeys and mismatchLabelKeys.
func matchKeys(val *rule.Validation, p rule.Value) {
	obj := p.Object()
	match, mismatch := rule.Strings(obj["matchLabelKeys"]), rule.Strings(obj["mismatchLabelKeys"])
	selector := rule.LabelSelector(obj["labelSelector"])
	for _, keys := range []struct {
		name string
		list []string
	}{{"matchLabelKeys", match}, {"mismatchLabelKeys", mismatch}} {
		path := p.Path.Child(keys.name)
		if len(keys.list) > 0 && selector == nil {
			val.Forbidden(path, "must not be specified when labelSelector is not set")
			continue
		}
		for i, key := range keys.list {
			val.Invalids(path.Index(i), key, validation.IsQualifiedName(key))
		}
	}
	if selector != nil {
		seen, last := sets.KeySet(selector.MatchLabels), map[string]int{}
		for i, key := range match {
			last[key] = i
		}
		for _, e := range selector.MatchExpressions {
			if i, ok := last[e.Key]; ok && seen.Has(e.Key) {
				val.Invalid(p.Path.Index(i), e.Key, "exists in both matchLabelKeys and labelSelector")
			}
			seen.Insert(e.Key)
		}
	}
	excluded := sets.New(mismatch...)
	for i, key := range match {
		if excluded.Has(key) {
			val.Invalid(p.Path.Child("matchLabelKeys").Index(i), key,
				"exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
}

// spreadKeys is matchKeys, or its earlier form before the selector included the keys.
func spreadKeys(val *rule.Validation, p rule.Value) {
	before := len(val.Errs)
	matchKeys(val, p)
	if len(val.Errs) == before || !val.Excused(keysBeside) {
		return
	}
	val.Errs = val.Errs[:before]
	list, path := rule.Strings(p.Object()["matchLabelKeys"]), p.Path.Child("matchLabelKeys")
	selector := rule.LabelSelector(p.Object()["labelSelector"])
	if len(list) > 0 && selector == nil {
		val.Forbidden(path, "must not be specified when labelSelector is not set")
	}
	selected := sets.Set[string]{}
	if selector != nil {
		selected = sets.KeySet(selector.MatchLabels)
		for _, e := range selector.MatchExpressions {
			selected.Insert(e.Key)
		}
	}
	for i, key := range list {
		val.Invalids(path.Index(i), key, validation.IsQualifiedName(key))
		if selected.Has(key) {
			val.Invalid(path.Index(i), key, "exists in both matchLabelKeys and labelSelector")
		}
	}
}

func spreadSelectors(val *rule.Validation, p rule.Value) {
	if errs := rule.SelectorErrors(rule.LabelSelector(p.New), false, p.Path); len(errs) > 0 &&
		!val.Excused(spreadSelector) {
		val.Errs = append(val.Errs, errs...)
	}
}

// spread validates topology spread constraints: one for each pair of topology key and action.
func spread(val *rule.Validation, p rule.Value) {
	list := rule.Objects(p.New)
	pair := func(c object.Object) string {
		return fmt.Sprintf("{%v, %v}", object.String(c, "topologyKey"), object.String(c, "whenUnsatisfiable"))
	}
	last := map[string]int{}
	for i, c := range list {
		last[pair(c)] = i
	}
	for i, c := range list {
		path := p.Path.Index(i)
		val.Block("SpreadConstraint", c, nil, path)
		if last[pair(c)] > i {
			val.Duplicate(path.Child("{topologyKey, whenUnsatisfiable}"), pair(c))
		}
	}
}

func minDomains(val *rule.Validation, p rule.Value) {
	n, ok := object.Int(p.Object(), "minDomains")
	if !ok {
		return
	}
	path := p.Path.Child("minDomains")
	if n <= 0 {
		val.Invalid(path, n, "must be greater than zero")
	}
	if action := object.String(p.Object(), "whenUnsatisfiable"); action != "DoNotSchedule" {
		val.Invalid(path, n, "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "+action)
	}
}

// schedulingFunctions are the functions that scheduling.txt names.
func schedulingFunctions() rule.Functions {
	return rule.Functions{
		"affinityNamespaces": affinityNamespaces,
		"affinitySelector":   func(val *rule.Validation, p rule.Value) { val.Selects(p.New, affinityValues, p.Path) },
		"labelValues":        labelValues,
		"matchKeys":          matchKeys,
		"minDomains":         minDomains,
		"nodeExpression":     nodeExpression,
		"nodeField":          nodeField,
		"spreadKeys":         spreadKeys,
		"spreadSelector":     spreadSelectors,
		"toleration":         func(val *rule.Validation, p rule.Value) { CheckToleration(val, p.Object(), p.Path) },
	}
}
