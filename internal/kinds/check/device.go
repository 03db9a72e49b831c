package check

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/resource/selector"
)

// deviceFunctions are about the kinds of resource.k8s.io: what devices there are, what a claim asks for and what it
// got.
func deviceFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"deviceClaim":      deviceClaim,
		"deviceClass":      deviceClass,
		"deviceToleration": deviceToleration,
		"poolName":         poolName,
		"claimedDevices":   claimedDevices,
		"sameClaim":        sameIn[resourcev1.ResourceClaimSpec],
		"sameTemplate":     sameIn[resourcev1.ResourceClaimTemplateSpec],
		"resourceSlice":    resourceSlice,
	}
}

// age says how much an expression or a driver's parameters may be: what is stored already may be what is not accepted
// any more.
type age int

const (
	fresh age = iota
	stored
)

// list refuses a list with more than most elements as it is, and calls each for the elements of a shorter one. A
// negative most is no limit.
func list[T any](j *judgement, elements []T, most int, path *field.Path, each func(T, *field.Path)) bool {
	if most >= 0 && len(elements) > most {
		j.add(field.TooMany(path, len(elements), most))
		return false
	}
	for i, e := range elements {
		each(e, path.Index(i))
	}
	return true
}

// set is list for elements of which no two may have the same key.
func set[T any, K comparable](
	j *judgement, elements []T, most int, path *field.Path, key func(T) K, each func(T, *field.Path),
) {
	if !list(j, elements, most, path, each) {
		return
	}
	seen := map[K]bool{}
	for i, e := range elements {
		k := key(e)
		if seen[k] {
			j.duplicate(path.Index(i), k)
		}
		seen[k] = true
	}
}

// nameOf and itself are keys of set.
func nameOf(obj object) string { return text1(obj, "name") }

func itself(s string) string { return s }

// deviceClass judges what devices of a class have in common. Expressions that are as they were are judged as stored
// ones.
func deviceClass(j *judgement, p place) {
	spec, old := p.object(), inner(j.old, "spec")
	since := func(name string) age {
		if j.old != nil && same(spec[name], old[name]) {
			return stored
		}
		return fresh
	}
	j.deviceSelectors(spec["selectors"], since("selectors"), p.path.Child("selectors"))
	list(j, objects(spec["config"]), resourcev1.DeviceConfigMaxSize, p.path.Child("config"),
		func(c object, at *field.Path) {
			j.deviceConfig(c, since("config"), at)
		})
	if name, ok := spec["extendedResourceName"].(string); ok && !extended(name) {
		j.invalid(p.path.Child("extendedResourceName"), name, "must be a valid extended resource name")
	}
}

func (j *judgement) deviceSelectors(v any, a age, path *field.Path) {
	list(j, objects(v), resourcev1.DeviceSelectorsMaxSize, path, func(s object, at *field.Path) {
		if c := inner(s, "cel"); c != nil {
			j.deviceExpression(text1(c, "expression"), a, at.Child("cel", "expression"))
		} else {
			j.required(at.Child("cel"), "")
		}
	})
}

// deviceExpression judges a CEL expression about a device.
func (j *judgement) deviceExpression(s string, a age, path *field.Path) {
	if len(s) > resourcev1.CELSelectorExpressionMaxLength {
		j.add(field.TooLong(path, "", resourcev1.CELSelectorExpressionMaxLength))
		return
	}
	judge := selector.New
	if a == stored {
		judge = selector.Stored
	}
	switch v := judge(s); {
	case v.Err != nil:
		j.add(field.InternalError(path, v.Err))
	case v.Invalid != "":
		j.invalid(path, s, v.Invalid)
	case v.Costly:
		j.forbidden(path, "too complex, exceeds cost limit")
	}
}

// deviceConfig judges parameters for a driver.
func (j *judgement) deviceConfig(c object, a age, path *field.Path) {
	opaque := inner(c, "opaque")
	if opaque == nil {
		j.required(path.Child("opaque"), "")
		return
	}
	path = path.Child("opaque")
	driverName(j, place{value: opaque["driver"], path: path.Child("driver")})
	most := resourcev1.OpaqueParametersMaxLength
	if a == stored {
		most = -1 // from before there was a limit
	}
	j.jsonObject(opaque["parameters"], most, path.Child("parameters"))
}

// sizeOf returns how long v is as JSON, without whitespace, in bytes. Clients need not escape what HTML does.
func sizeOf(v any) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // decoded JSON
	return b.Len() - 1
}

// jsonObject wants a JSON object with at most so many bytes. A negative most is no limit.
func (j *judgement) jsonObject(v any, most int, path *field.Path) {
	if v == nil {
		j.required(path, "")
		return
	}
	switch _, ok := v.(object); {
	case most >= 0 && sizeOf(v) > most:
		j.add(field.TooLong(path, "", most))
	case !ok:
		j.invalid(path, "<value omitted>", "must be a valid JSON object")
	}
}

func deviceToleration(j *judgement, p place) {
	t := p.object()
	value := text1(t, "value")
	switch op := text1(t, "operator"); op {
	case "Exists":
		if value != "" {
			j.invalid(p.path.Child("value"), value, "must be empty for operator `Exists`")
		}
	case "Equal":
		j.invalids(p.path.Child("value"), value, validation.IsValidLabelValue(value))
	case "":
		j.required(p.path.Child("operator"), "")
	default:
		j.unsupported(p.path.Child("operator"), op, "Equal", "Exists")
	}
}

// poolName judges the name of a pool, whose parts are separated by slashes.
func poolName(j *judgement, p place) {
	name, _ := p.value.(string)
	if name == "" {
		j.required(p.path, "")
		return
	}
	if len(name) > resourcev1.PoolNameMaxLength {
		j.add(field.TooLong(p.path, "", resourcev1.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		j.invalids(p.path, part, validation.IsDNS1123Subdomain(part))
	}
}

// bindingConditions judges what must have happened before a pod is bound, and what must not.
func (j *judgement) bindingConditions(obj object, path *field.Path) {
	wanted, failures := texts(obj["bindingConditions"]), texts(obj["bindingFailureConditions"])
	wantedPath, failurePath := path.Child("bindingConditions"), path.Child("bindingFailureConditions")
	format := func(s string, at *field.Path) { j.errs = append(j.errs, unversioned.ValidateLabelName(s, at)...) }
	list(j, wanted, resourcev1.BindingConditionsMaxSize, wantedPath, format)
	list(j, failures, resourcev1.BindingFailureConditionsMaxSize, failurePath, format)
	set(j, wanted, -1, wantedPath, itself, func(string, *field.Path) {})
	seen := map[string]bool{}
	for i, s := range failures {
		if seen[s] {
			j.duplicate(failurePath.Index(i), s)
		}
		seen[s] = true
		if slices.Contains(wanted, s) {
			j.invalid(failurePath.Index(i), s, "bindingFailureConditions must not overlap with bindingConditions")
		}
	}
	switch {
	case len(wanted) == 0 && len(failures) > 0:
		j.invalid(wantedPath, obj["bindingConditions"],
			"bindingConditions are required to use bindingFailureConditions")
	case len(failures) == 0 && len(wanted) > 0:
		j.invalid(failurePath, obj["bindingFailureConditions"],
			"bindingFailureConditions are required to use bindingConditions")
	}
}
