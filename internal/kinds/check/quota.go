package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// quotaFunctions are about ResourceQuota and LimitRange.
func quotaFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"quotaResources": quotaResources,
		"quotaScopes":    quotaScopes,
		"scopeSelector":  scopeSelector,
		"sameScopes":     sameScopes,
		"limits":         limitRange,
	}
}

// broken tells whether a selector cannot be made of what is written.
func broken(s *metav1.LabelSelector) bool {
	_, err := metav1.LabelSelectorAsSelector(s)
	return err != nil
}

func quotaResources(j *judgement, p place) {
	for _, name := range keys(p.object()) {
		at := p.path.Key(name)
		j.resourceName(name, at)
		if len(strings.Split(name, "/")) == 1 && !inQuota(name) {
			j.invalid(at, name, "must be a standard resource for quota")
		}
		j.resourceQuantity(name, p.object()[name], at)
	}
}

var quotaScopeNames = []string{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass",
	"VolumeAttributesClass", "CrossNamespacePodAffinity"}

// scoped tells whether a scope limits a resource.
func scoped(scope, name string) bool {
	switch scope {
	case "Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity":
		return slices.Contains([]string{"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu",
			"requests.memory"}, name)
	case "BestEffort":
		return name == "pods"
	case "VolumeAttributesClass":
		return name == "persistentvolumeclaims" || name == "requests.storage"
	}
	return true
}

func quotaScopes(j *judgement, p place) {
	scopes, path := texts(p.object()["scopes"]), p.path.Child("scopes")
	for _, s := range scopes {
		if !slices.Contains(quotaScopeNames, s) {
			j.invalid(path, scopes, "unsupported scope")
		}
		for _, name := range keys(inner(p.object(), "hard")) {
			if inQuota(name) && !scoped(s, name) {
				j.invalid(path, scopes, "unsupported scope applied to resource")
			}
		}
	}
	j.conflicting(scopes, scopes, path)
}

func (j *judgement) conflicting(scopes, shown []string, path *field.Path) {
	for _, pair := range [][2]string{{"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"}} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			j.invalid(path, shown, "conflicting scopes")
		}
	}
}

func scopeSelector(j *judgement, p place) {
	selector := inner(p.object(), "scopeSelector")
	if selector == nil {
		return
	}
	path := p.path.Child("scopeSelector", "matchExpressions")
	var scopes []string
	for _, e := range objects(selector["matchExpressions"]) {
		scope, op, values := text1(e, "scopeName"), text1(e, "operator"), texts(e["values"])
		if !slices.Contains(quotaScopeNames, scope) {
			j.invalid(path.Child("scopeName"), scope, "unsupported scope")
		}
		for _, name := range keys(inner(p.object(), "hard")) {
			if inQuota(name) && !scoped(scope, name) {
				j.invalid(path, selector, "unsupported scope applied to resource")
			}
		}
		if op != "Exists" && slices.Contains(quotaScopeNames, scope) && scope != "PriorityClass" &&
			scope != "VolumeAttributesClass" {
			j.invalid(path.Child("operator"), op,
				"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity")
		}
		switch op {
		case "In", "NotIn":
			if len(values) == 0 {
				j.required(path.Child("values"),
					"must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
			}
		case "Exists", "DoesNotExist":
			if len(values) > 0 {
				j.invalid(path.Child("values"), values,
					"must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
			}
		default:
			j.invalid(path.Child("operator"), op, "not a valid selector operator")
		}
		scopes = append(scopes, scope)
	}
	j.conflicting(scopes, texts(p.object()["scopes"]), path)
}

func sameScopes(j *judgement, p place) {
	set := func(v any) []string { return slices.Compact(slices.Sorted(slices.Values(texts(v)))) }
	if !slices.Equal(set(p.value), set(p.old)) {
		j.invalid(p.path, texts(p.value), "field is immutable")
	}
}

// limitRange judges limits: one of each type, and max, default, defaultRequest and min in this order.
func limitRange(j *judgement, p place) {
	seen := map[string]bool{}
	for i, l := range objects(p.value) {
		at, kind := p.path.Index(i), text1(l, "type")
		if wrong := validation.IsQualifiedName(kind); len(wrong) > 0 {
			j.invalids(at.Child("type"), kind, wrong)
		} else if !strings.Contains(kind, "/") && kind != "Pod" && kind != "Container" &&
			kind != "PersistentVolumeClaim" {
			j.invalid(at.Child("type"), kind, "must be a standard limit type or fully qualified")
		}
		if seen[kind] {
			j.duplicate(at.Child("type"), kind)
		}
		seen[kind] = true
		j.limit(l, kind, at)
	}
}

func (j *judgement) limit(l object, kind string, path *field.Path) {
	lists := []string{"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}
	names := map[string]bool{}
	all := map[string]map[string]resource.Quantity{}
	for _, list := range lists {
		amounts := inner(l, list)
		if kind == "Pod" && strings.HasPrefix(list, "default") {
			if len(amounts) > 0 {
				j.forbidden(path.Child(list), "may not be specified when `type` is 'Pod'")
			}
			continue
		}
		all[list] = map[string]resource.Quantity{}
		for _, name := range keys(amounts) {
			if kind == "Pod" || kind == "Container" {
				j.containerResource(name, path.Child(list).Key(name))
			} else {
				j.resourceName(name, path.Child(list).Key(name))
			}
			names[name] = true
			all[list][name] = quantity(amounts[name])
		}
	}
	if kind == "PersistentVolumeClaim" && inner(l, "min")["storage"] == nil && inner(l, "max")["storage"] == nil {
		j.required(path.Child("limits"),
			"either minimum or maximum storage value is required, but neither was provided")
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		j.inLimitOrder(all, name, path)
	}
}

func (j *judgement) inLimitOrder(all map[string]map[string]resource.Quantity, name string, path *field.Path) {
	get := func(list string) (resource.Quantity, bool) { q, ok := all[list][name]; return q, ok }
	least, hasMin := get("min")
	most, hasMax := get("max")
	limit, hasLimit := get("default")
	request, hasRequest := get("defaultRequest")
	ratio, hasRatio := get("maxLimitRequestRatio")
	// wrong says that low, which shown is one of, is above high.
	wrong := func(both bool, low, high resource.Quantity, list string, shown resource.Quantity, format string) {
		if both && low.Cmp(high) > 0 {
			j.invalid(path.Child(list).Key(name), shown.String(), fmt.Sprintf(format, low.String(), high.String()))
		}
	}
	wrong(hasMin && hasMax, least, most, "min", least, "min value %s is greater than max value %s")
	wrong(hasRequest && hasMin, least, request, "defaultRequest", request,
		"min value %s is greater than default request value %s")
	wrong(hasRequest && hasMax, request, most, "defaultRequest", request,
		"default request value %s is greater than max value %s")
	wrong(hasRequest && hasLimit, request, limit, "defaultRequest", request,
		"default request value %s is greater than default limit value %s")
	wrong(hasLimit && hasMin, least, limit, "default", least, "min value %s is greater than default value %s")
	wrong(hasLimit && hasMax, limit, most, "default", most, "default value %s is greater than max value %s")
	at := path.Child("maxLimitRequestRatio").Key(name)
	if one := resource.MustParse("1"); hasRatio && ratio.Cmp(one) < 0 {
		j.invalid(at, ratio.String(), fmt.Sprintf("ratio %s is less than 1", ratio.String()))
	}
	if hasRatio && hasMin && hasMax {
		value, low, high := float64(ratio.Value()), least.Value(), most.Value()
		if ratio.Value() < resource.MaxMilliValue && low < resource.MaxMilliValue && high < resource.MaxMilliValue {
			value, low, high = float64(ratio.MilliValue())/1000, least.MilliValue(), most.MilliValue()
		}
		if whole := float64(high) / float64(low); value > whole {
			j.invalid(at, ratio.String(), fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), whole))
		}
	}
	if !overcommits(name) && hasLimit && hasRequest && limit.Cmp(request) != 0 {
		j.invalid(path.Child("defaultRequest").Key(name), request.String(),
			fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", limit.String(),
				request.String(), name))
	}
}
