package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

func limitRangeKind() rule.Kind {
	return rule.Of[corev1.LimitRange](rule.Kind{
		Group: coreV1, Kind: "LimitRange", Plural: "limitranges", Short: []string{"limits"},
		Strategy: &catalog.Strategy{
			Default: defaultLimitRange, PrepareCreate: nameLimitRange, VisibleOnReturn: true, UnconditionalUpdate: true,
			CreateOnUpdate: true,
		},
	})
}

// nameLimitRange names a LimitRange without a name by its uid.
func nameLimitRange(obj object.Object, _ catalog.Env) {
	meta := object.Child(obj, "metadata")
	if name, _ := meta["name"].(string); name == "" {
		meta["name"] = meta["uid"]
	}
}

// defaultLimitRange completes limits of containers from each other: max, default, defaultRequest, min.
func defaultLimitRange(obj object.Object) {
	spec, _ := obj["spec"].(map[string]any)
	for _, item := range object.Objects(spec["limits"]) {
		pod.RoundUp(item, "max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
		if item["type"] != "Container" {
			continue
		}
		take := func(to, from string) {
			source, _ := item[from].(map[string]any)
			for name, quantity := range source {
				rule.SetDefault(object.Child(item, to), name, quantity)
			}
		}
		take("default", "max")
		take("defaultRequest", "default")
		take("defaultRequest", "min")
	}
}

// limitRange validates limits: unique types, and max, default, defaultRequest and min in this order.
func limitRange(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for i, l := range rule.Objects(p.New) {
		at, kind := p.Path.Index(i), object.String(l, "type")
		if wrong := validation.IsQualifiedName(kind); len(wrong) > 0 {
			val.Invalids(at.Child("type"), kind, wrong)
		} else if !strings.Contains(kind, "/") && kind != "Pod" && kind != "Container" &&
			kind != "PersistentVolumeClaim" {
			val.Invalid(at.Child("type"), kind, "must be a standard limit type or fully qualified")
		}
		if seen[kind] {
			val.Duplicate(at.Child("type"), kind)
		}
		seen[kind] = true
		limit(val, l, kind, at)
	}
}

func limit(val *rule.Validation, l object.Object, kind string, path *field.Path) {
	lists := []string{"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}
	names := map[string]bool{}
	all := map[string]map[string]resource.Quantity{}
	for _, list := range lists {
		amounts := object.Map(l, list)
		if kind == "Pod" && strings.HasPrefix(list, "default") {
			if len(amounts) > 0 {
				val.Forbidden(path.Child(list), "may not be specified when `type` is 'Pod'")
			}
			continue
		}
		all[list] = map[string]resource.Quantity{}
		for _, name := range object.Keys(amounts) {
			if kind == "Pod" || kind == "Container" {
				pod.CheckContainerResource(val, name, path.Child(list).Key(name))
			} else {
				pod.CheckResourceName(val, name, path.Child(list).Key(name))
			}
			names[name] = true
			all[list][name] = rule.Quantity(amounts[name])
		}
	}
	if kind == "PersistentVolumeClaim" && object.Map(l, "min")["storage"] == nil &&
		object.Map(l, "max")["storage"] == nil {
		val.Required(path.Child("limits"),
			"either minimum or maximum storage value is required, but neither was provided")
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		inLimitOrder(val, all, name, path)
	}
}

func inLimitOrder(val *rule.Validation, all map[string]map[string]resource.Quantity, name string, path *field.Path) {
	get := func(list string) (resource.Quantity, bool) { q, ok := all[list][name]; return q, ok }
	least, hasMin := get("min")
	most, hasMax := get("max")
	limit, hasLimit := get("default")
	request, hasRequest := get("defaultRequest")
	ratio, hasRatio := get("maxLimitRequestRatio")
	// wrong reports that low is above high. shown is one of the two.
	wrong := func(both bool, low, high resource.Quantity, list string, shown resource.Quantity, format string) {
		if both && quantity.Cmp(low, high) > 0 {
			val.Invalid(path.Child(list).Key(name), shown.String(), fmt.Sprintf(format, low.String(), high.String()))
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
	if one := resource.MustParse("1"); hasRatio && quantity.Cmp(ratio, one) < 0 {
		val.Invalid(at, ratio.String(), fmt.Sprintf("ratio %s is less than 1", ratio.String()))
	}
	if hasRatio && hasMin && hasMax {
		value, low, high := float64(ratio.Value()), least.Value(), most.Value()
		if ratio.Value() < resource.MaxMilliValue && low < resource.MaxMilliValue && high < resource.MaxMilliValue {
			value, low, high = float64(ratio.MilliValue())/1000, least.MilliValue(), most.MilliValue()
		}
		if whole := float64(high) / float64(low); value > whole {
			val.Invalid(at, ratio.String(), fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), whole))
		}
	}
	if !pod.Overcommits(name) && hasLimit && hasRequest && quantity.Cmp(limit, request) != 0 {
		val.Invalid(path.Child("defaultRequest").Key(name), request.String(),
			fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", limit.String(),
				request.String(), name))
	}
}

// limitRangeFunctions are the functions that limit_range.txt names.
func limitRangeFunctions() rule.Functions {
	return rule.Functions{
		"limits": limitRange,
	}
}
