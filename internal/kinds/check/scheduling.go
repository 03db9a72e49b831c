package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func schedulingFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"toleration":         func(j *judgement, p place) { j.toleration(p.object(), p.path) },
		"tolerationsOnce":    tolerationsOnce,
		"nodeExpression":     nodeExpression,
		"nodeField":          nodeField,
		"affinityNamespaces": affinityNamespaces,
		"matchKeys":          matchKeys,
		"affinitySelector":   func(j *judgement, p place) { j.selects(p.value, affinityValues, p.path) },
		"labelValues":        labelValues,
		"spreadKeys":         spreadKeys,
		"spreadSelector":     spreadSelectors,
		"spread":             spread,
		"minDomains":         minDomains,
	}
}

func (j *judgement) toleration(t object, path *field.Path) {
	key, op, value, effect := text1(t, "key"), text1(t, "operator"), text1(t, "value"), text1(t, "effect")
	if key != "" {
		j.invalids(path.Child("key"), key, validation.IsQualifiedName(key))
	}
	if key == "" && op != "Exists" {
		j.invalid(path.Child("operator"), op,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
	}
	if t["tolerationSeconds"] != nil && effect != "NoExecute" {
		j.invalid(path.Child("effect"), effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
	}
	switch op {
	case "Equal", "":
		if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
			j.invalid(path.Child("operator"), value, strings.Join(wrong, ";"))
		}
	case "Exists":
		if value != "" {
			j.invalid(path.Child("operator"), value, "value must be empty when `operator` is 'Exists'")
		}
	case "Lt", "Gt": // behind a feature gate
		if !j.excused(comparing) {
			j.unsupported(path.Child("operator"), op, "Equal", "Exists", "Lt", "Gt")
			break
		}
		j.invalids(path.Child("value"), value, content.IsDecimalInteger(value))
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			j.invalid(path.Child("value"), value, err.Error())
		}
	default:
		j.unsupported(path.Child("operator"), op, "Equal", "Exists")
	}
	if effect != "" {
		j.taintEffect(effect, path.Child("effect"))
	}
}

// tolerationsOnce wants each toleration to be there once, however long it lasts.
func tolerationsOnce(j *judgement, p place) {
	seen := map[[4]string]bool{}
	for i, t := range objects(p.value) {
		j.toleration(t, p.path.Index(i))
		key := [4]string{text1(t, "key"), text1(t, "operator"), text1(t, "value"), text1(t, "effect")}
		if seen[key] {
			j.duplicate(p.path.Index(i), t)
		}
		seen[key] = true
	}
}

func (j *judgement) taintEffect(effect string, path *field.Path) {
	if effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute" {
		j.unsupported(path, effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
	}
}

// nodeExpression judges a requirement about the labels of a node.
func nodeExpression(j *judgement, p place) {
	r := p.object()
	n := len(texts(r["values"]))
	switch path := p.path.Child("values"); text1(r, "operator") {
	case "In", "NotIn":
		if n == 0 {
			j.required(path, "must be specified when `operator` is 'In' or 'NotIn'")
		}
	case "Exists", "DoesNotExist":
		if n > 0 {
			j.forbidden(path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
		}
	case "Gt", "Lt":
		if n != 1 {
			j.required(path, "must be specified single value when `operator` is 'Lt' or 'Gt'")
		}
	default:
		j.invalid(p.path.Child("operator"), text1(r, "operator"), "not a valid selector operator")
	}
	key := text1(r, "key")
	j.invalids(p.path.Child("key"), key, validation.IsQualifiedName(key))
}

// nodeField judges a requirement about a field of a node, of which there is one: its name.
func nodeField(j *judgement, p place) {
	r := p.object()
	values := texts(r["values"])
	switch op := text1(r, "operator"); op {
	case "In", "NotIn":
		if len(values) != 1 {
			j.required(p.path.Child("values"),
				"must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
		}
	default:
		j.invalid(p.path.Child("operator"), op, "not a valid selector operator")
	}
	if key := text1(r, "key"); key != "metadata.name" {
		j.invalid(p.path.Child("key"), key, "not a valid field selector key")
		return
	}
	for i, v := range values {
		j.invalids(p.path.Child("values").Index(i), v, validation.IsDNS1123Subdomain(v))
	}
}

func affinityNamespaces(j *judgement, p place) {
	for _, name := range texts(p.object()["namespaces"]) {
		j.invalids(p.path.Child("namespace"), name, validation.IsDNS1123Label(name))
	}
}

// matchKeys judges the keys whose values a pod shares with its peers, or does not.
func matchKeys(j *judgement, p place) {
	obj := p.object()
	match, mismatch := texts(obj["matchLabelKeys"]), texts(obj["mismatchLabelKeys"])
	selector := labelSelector(obj["labelSelector"])
	for name, list := range map[string][]string{"matchLabelKeys": match, "mismatchLabelKeys": mismatch} {
		path := p.path.Child(name)
		if len(list) > 0 && selector == nil {
			j.forbidden(path, "must not be specified when labelSelector is not set")
			continue
		}
		for i, key := range list {
			j.invalids(path.Index(i), key, validation.IsQualifiedName(key))
		}
	}
	if selector != nil {
		var seen []string
		for key := range selector.MatchLabels {
			seen = append(seen, key)
		}
		for _, e := range selector.MatchExpressions {
			if i := slices.Index(match, e.Key); i >= 0 && slices.Contains(seen, e.Key) {
				j.invalid(p.path.Index(i), e.Key, "exists in both matchLabelKeys and labelSelector")
			}
			seen = append(seen, e.Key)
		}
	}
	for i, key := range match {
		if slices.Contains(mismatch, key) {
			j.invalid(p.path.Child("matchLabelKeys").Index(i), key,
				"exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
}

// spreadKeys is matchKeys, or what it was before a pod's selector took the keys in.
func spreadKeys(j *judgement, p place) {
	before := len(j.errs)
	matchKeys(j, p)
	if len(j.errs) == before || !j.excused(keysBeside) {
		return
	}
	j.errs = j.errs[:before]
	list, path := texts(p.object()["matchLabelKeys"]), p.path.Child("matchLabelKeys")
	selector := labelSelector(p.object()["labelSelector"])
	if len(list) > 0 && selector == nil {
		j.forbidden(path, "must not be specified when labelSelector is not set")
	}
	for i, key := range list {
		j.invalids(path.Index(i), key, validation.IsQualifiedName(key))
		if selector == nil {
			continue
		}
		_, equal := selector.MatchLabels[key]
		if equal ||
			slices.ContainsFunc(selector.MatchExpressions,
				func(e metav1.LabelSelectorRequirement) bool { return e.Key == key }) {
			j.invalid(path.Index(i), key, "exists in both matchLabelKeys and labelSelector")
		}
	}
}

func spreadSelectors(j *judgement, p place) {
	if errs := selectorErrors(labelSelector(p.value), false, p.path); len(errs) > 0 && !j.excused(spreadSelector) {
		j.errs = append(j.errs, errs...)
	}
}

// spread judges how pods are spread over domains: one constraint for each pair of domain and action.
func spread(j *judgement, p place) {
	list := objects(p.value)
	pair := func(c object) string {
		return fmt.Sprintf("{%v, %v}", text1(c, "topologyKey"), text1(c, "whenUnsatisfiable"))
	}
	for i, c := range list {
		path := p.path.Index(i)
		j.block("SpreadConstraint", c, nil, path)
		if slices.ContainsFunc(list[i+1:], func(other object) bool { return pair(other) == pair(c) }) {
			j.duplicate(path.Child("{topologyKey, whenUnsatisfiable}"), pair(c))
		}
	}
}

func minDomains(j *judgement, p place) {
	n, ok := number(p.object(), "minDomains")
	if !ok {
		return
	}
	path := p.path.Child("minDomains")
	if n <= 0 {
		j.invalid(path, n, "must be greater than zero")
	}
	if action := text1(p.object(), "whenUnsatisfiable"); action != "DoNotSchedule" {
		j.invalid(path, n, "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "+action)
	}
}
