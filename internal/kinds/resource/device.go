package resource

import (
	"bytes"
	"encoding/json"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/resource/selector"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// age is whether a value is new or already stored. Stored expressions and driver parameters may exceed limits that
// Kubernetes introduced after they were written.
type age int

const (
	fresh age = iota
	stored
)

// list rejects a list with more than most elements as a whole, and calls each for the elements of a shorter one. A
// negative most means no limit.
func list[T any](val *rule.Validation, elements []T, most int, path *field.Path, each func(T, *field.Path)) bool {
	if most >= 0 && len(elements) > most {
		val.Add(field.TooMany(path, len(elements), most))
		return false
	}
	for i, e := range elements {
		each(e, path.Index(i))
	}
	return true
}

// set is list for elements with unique keys.
func set[T any, K comparable](
	val *rule.Validation, elements []T, most int, path *field.Path, key func(T) K, each func(T, *field.Path),
) {
	if !list(val, elements, most, path, each) {
		return
	}
	seen := map[K]bool{}
	for i, e := range elements {
		k := key(e)
		if seen[k] {
			val.Duplicate(path.Index(i), k)
		}
		seen[k] = true
	}
}

// unique requires unique keys of objects, by a declarative rule of Kubernetes: its errors show the object of type T.
func unique[T any](
	val *rule.Validation, elements []object.Object, path *field.Path, key func(object.Object) string,
) {
	seen := map[string]bool{}
	for i, e := range elements {
		k := key(e)
		if seen[k] {
			val.Declared(field.Duplicate(path.Index(i), rule.As[T](e)))
		}
		seen[k] = true
	}
}

// nameOf and itself are keys of set.
func nameOf(obj object.Object) string { return object.String(obj, "name") }

func itself(s string) string { return s }

func deviceSelectors(val *rule.Validation, v any, a age, path *field.Path) {
	list(val, rule.Objects(v), resourcev1.DeviceSelectorsMaxSize, path, func(s object.Object, at *field.Path) {
		if c := object.Map(s, "cel"); c != nil {
			deviceExpression(val, object.String(c, "expression"), a, at.Child("cel", "expression"))
		} else {
			val.Required(at.Child("cel"), "")
		}
	})
}

// deviceExpression validates a CEL expression about a device.
func deviceExpression(val *rule.Validation, s string, a age, path *field.Path) {
	if len(s) > resourcev1.CELSelectorExpressionMaxLength {
		val.Add(field.TooLong(path, "", resourcev1.CELSelectorExpressionMaxLength))
		return
	}
	compile := selector.New
	if a == stored {
		compile = selector.Stored
	}
	switch v := compile(s); {
	case v.Err != nil:
		val.Add(field.InternalError(path, v.Err))
	case v.Invalid != "":
		val.Invalid(path, s, v.Invalid)
	case v.Costly:
		val.Forbidden(path, "too complex, exceeds cost limit")
	}
}

// deviceConfig validates parameters for a driver.
func deviceConfig(val *rule.Validation, c object.Object, a age, path *field.Path) {
	opaque := object.Map(c, "opaque")
	if opaque == nil {
		val.Required(path.Child("opaque"), "")
		return
	}
	path = path.Child("opaque")
	rule.AnyDriver(val, rule.Value{New: opaque["driver"], Path: path.Child("driver")})
	most := resourcev1.OpaqueParametersMaxLength
	if a == stored {
		most = -1 // from before there was a limit
	}
	jsonObject(val, opaque["parameters"], most, path.Child("parameters"))
}

// sizeOf returns the length of v as JSON, without whitespace, in bytes, and without HTML escapes.
func sizeOf(v any) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // decoded JSON
	return b.Len() - 1
}

// jsonObject requires a JSON object with at most so many bytes. A negative most means no limit.
func jsonObject(val *rule.Validation, v any, most int, path *field.Path) {
	if v == nil {
		val.Required(path, "")
		return
	}
	switch _, ok := v.(object.Object); {
	case most >= 0 && sizeOf(v) > most:
		val.Add(field.TooLong(path, "", most))
	case !ok:
		val.Invalid(path, "<value omitted>", "must be a valid JSON object")
	}
}

func deviceToleration(val *rule.Validation, p rule.Value) {
	t := p.Object()
	value := object.String(t, "value")
	switch op := object.String(t, "operator"); op {
	case "Exists":
		if value != "" {
			val.Invalid(p.Path.Child("value"), value, "must be empty for operator `Exists`")
		}
	case "Equal":
		val.Invalids(p.Path.Child("value"), value, validation.IsValidLabelValue(value))
	case "":
		val.Required(p.Path.Child("operator"), "")
	default:
		val.Unsupported(p.Path.Child("operator"), op, "Equal", "Exists")
	}
}

// poolName validates the name of a pool, with parts separated by slashes.
func poolName(val *rule.Validation, p rule.Value) {
	name, _ := p.New.(string)
	if name == "" {
		val.Required(p.Path, "")
		return
	}
	if len(name) > resourcev1.PoolNameMaxLength {
		val.Add(field.TooLong(p.Path, "", resourcev1.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		val.Invalids(p.Path, part, validation.IsDNS1123Subdomain(part))
	}
}

// bindingConditions validates the conditions for the binding of a pod, and the conditions that prevent it.
func bindingConditions(val *rule.Validation, obj object.Object, path *field.Path) {
	wanted, failures := rule.Strings(obj["bindingConditions"]), rule.Strings(obj["bindingFailureConditions"])
	wantedPath, failurePath := path.Child("bindingConditions"), path.Child("bindingFailureConditions")
	format := func(s string, at *field.Path) { val.Errs = append(val.Errs, unversioned.ValidateLabelName(s, at)...) }
	list(val, wanted, resourcev1.BindingConditionsMaxSize, wantedPath, format)
	list(val, failures, resourcev1.BindingFailureConditionsMaxSize, failurePath, format)
	set(val, wanted, -1, wantedPath, itself, func(string, *field.Path) {})
	seen, others := map[string]bool{}, sets.New(wanted...)
	for i, s := range failures {
		if seen[s] {
			val.Duplicate(failurePath.Index(i), s)
		}
		seen[s] = true
		if others.Has(s) {
			val.Invalid(failurePath.Index(i), s, "bindingFailureConditions must not overlap with bindingConditions")
		}
	}
	switch {
	case len(wanted) == 0 && len(failures) > 0:
		val.Invalid(wantedPath, obj["bindingConditions"],
			"bindingConditions are required to use bindingFailureConditions")
	case len(failures) == 0 && len(wanted) > 0:
		val.Invalid(failurePath, obj["bindingFailureConditions"],
			"bindingFailureConditions are required to use bindingConditions")
	}
}
