package resource

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// fractions is the feature for fractions in the amounts of a capacity.
const fractions = "DRAFractionalCapacityRange"

// requestPolicy validates the allowed amounts of a capacity.
func requestPolicy(val *rule.Validation, most resource.Quantity, policy object.Object, path *field.Path) {
	values, _ := policy["validValues"].([]any)
	amounts := object.Map(policy, "validRange")
	usual, defaulted := policy["default"]
	switch {
	case len(values) > 0 && amounts != nil:
		val.Forbidden(path,
			`exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)
	case len(values) > 0 && !defaulted:
		val.Required(path.Child("default"), "required when validValues is defined")
	case len(values) > 0:
		validValues(val, rule.Quantity(usual), most, values, path.Child("validValues"))
	case amounts != nil && !defaulted:
		val.Required(path.Child("default"), "required when validRange is defined")
	case amounts != nil:
		validRange(val, rule.Quantity(usual), most, amounts, path.Child("validRange"))
	}
}

// mostValidValues is the largest number of amounts in a policy; it is not among the published limits.
const mostValidValues = 10

func validValues(val *rule.Validation, usual, most resource.Quantity, values []any, path *field.Path) {
	amounts := make([]resource.Quantity, len(values))
	found := false
	for i, v := range values {
		amounts[i] = rule.Quantity(v)
		if i > 0 && quantity.Cmp(amounts[i-1], amounts[i]) > 0 {
			val.Invalid(path.Index(i), amounts[i].String(), "values must be sorted in ascending order")
		}
	}
	key := func(q resource.Quantity) string { return q.AsDec().String() }
	if val.Lacks(fractions) {
		key = func(q resource.Quantity) string { return strconv.FormatInt(q.Value(), 10) }
	}
	set(val, amounts, mostValidValues, path, key, func(q resource.Quantity, at *field.Path) {
		if quantity.Cmp(q, most) > 0 {
			val.Invalid(at, q.String(), "option is larger than capacity value: "+most.String())
		}
		found = found || quantity.Cmp(q, usual) == 0
	})
	if !found {
		val.Invalid(path, usual.String(), "default value is not valid according to the requestPolicy")
	}
}

// mostWhole is the largest amount in whole numbers.
var mostWhole = *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)

// amountRange is the range of a policy, and its default.
type amountRange struct {
	amounts                object.Object
	usual, low, high, step resource.Quantity
}

func validRange(val *rule.Validation, usual, most resource.Quantity, amounts object.Object, path *field.Path) {
	if amounts["min"] == nil {
		val.Required(path.Child("min"), "required when validRange is defined")
		return
	}
	r := amountRange{amounts, usual, rule.Quantity(amounts["min"]), rule.Quantity(amounts["max"]),
		rule.Quantity(amounts["step"])}
	refuse := func(wrong bool, name string, q resource.Quantity, detail string, than resource.Quantity) {
		if wrong {
			val.Invalid(path.Child(name), q.String(), detail+than.String())
		}
	}
	refuse(quantity.Cmp(r.low, most) > 0, "min", r.low, "min is larger than capacity value: ", most)
	refuse(quantity.Cmp(usual, r.low) < 0, "default", usual, "default is less than min: ", r.low)
	if amounts["max"] != nil {
		refuse(quantity.Cmp(r.low, r.high) > 0, "max", r.low, "min is larger than max: ", r.high)
		refuse(quantity.Cmp(r.high, most) > 0, "max", r.high, "max is larger than capacity value: ", most)
		refuse(quantity.Cmp(usual, r.high) > 0, "default", usual, "default is more than max: ", r.high)
	}
	whole := (*resource.Quantity).Value
	if !val.Lacks(fractions) && r.fractional() {
		whole = (*resource.Quantity).MilliValue
		if r.refuse(val, path, notInThousandths) {
			return
		}
	}
	if amounts["step"] == nil {
		return
	}
	if r.step.Sign() <= 0 {
		val.Invalid(path.Child("step"), r.step.String(), "must be greater than zero")
		return
	}
	next := r.low.DeepCopy()
	quantity.Add(&next, r.step)
	if quantity.Cmp(next, most) > 0 {
		val.Invalid(path.Child("step"), r.step.String(),
			fmt.Sprintf("one step %s is larger than capacity value: %s", &next, &most))
	}
	if (val.Lacks(fractions) || !r.fractional()) && r.refuse(val, path, notInt64) {
		return
	}
	r.onStep(val, r.usual, whole, path)
	if amounts["max"] != nil {
		r.onStep(val, r.high, whole, path)
	}
}

// onStep requires that q is a multiple of the step above the lowest amount.
func (r *amountRange) onStep(
	val *rule.Validation, q resource.Quantity, whole func(*resource.Quantity) int64, path *field.Path,
) {
	if (whole(&q)-whole(&r.low))%whole(&r.step) != 0 {
		val.Invalid(path.Child("step"), q.String(),
			fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", &r.step, &r.low))
	}
}

// fractional reports whether one of the amounts is no whole number.
func (r *amountRange) fractional() bool {
	for _, q := range []resource.Quantity{r.usual, r.low, r.high, r.step} {
		whole := resource.NewQuantity(q.Value(), q.Format)
		if quantity.Cmp(q, mostWhole) <= 0 && quantity.Cmp(q, *whole) != 0 {
			return true
		}
	}
	return false
}

// refuse adds the errors of check about the amounts, and reports whether there are any.
func (r *amountRange) refuse(val *rule.Validation, path *field.Path, check func(resource.Quantity) string) bool {
	refused := false
	given := func(name string, q resource.Quantity) {
		if wrong := check(q); wrong != "" {
			val.Invalid(path.Child(name), q.String(), wrong)
			refused = true
		}
	}
	given("default", r.usual)
	given("min", r.low)
	if r.amounts["max"] != nil {
		given("max", r.high)
	}
	if r.amounts["step"] != nil {
		given("step", r.step)
	}
	return refused
}

func notInThousandths(q resource.Quantity) string {
	if quantity.Cmp(q, *resource.NewMilliQuantity(q.MilliValue(), q.Format)) != 0 {
		return "value cannot be represented as a milli value"
	}
	return ""
}

func notInt64(q resource.Quantity) string {
	switch {
	case q.Sign() < 0:
		return "must be greater than or equal to 0"
	case quantity.Cmp(q, mostWhole) > 0:
		return "must not be larger than 9223372036854775807"
	}
	return ""
}
