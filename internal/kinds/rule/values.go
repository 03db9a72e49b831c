package rule

import (
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSelector validates a label selector, if there is one.
func checkSelector(val *Validation, p Value) { val.Selects(p.New, SelectorValues, p.Path) }

// PortOrName validates a port number or name. 0 is not a port.
func PortOrName(val *Validation, p Value) {
	switch v := p.New.(type) {
	case string:
		val.Invalids(p.Path, v, validation.IsValidPortName(v))
	case int64:
		val.Invalids(p.Path, v, validation.IsValidPortNum(int(v)))
	default:
		val.Invalids(p.Path, int64(0), validation.IsValidPortNum(0))
	}
}

// CheckCount validates a number, or a percentage.
func CheckCount(val *Validation, p Value) {
	switch v := p.New.(type) {
	case string:
		val.Invalids(p.Path, v, validation.IsValidPercent(v))
	case int64:
		if v < 0 {
			val.Invalid(p.Path, v, "must be greater than or equal to 0")
		}
	}
}

// CheckAtMostAll refuses percentages of more than 100.
func CheckAtMostAll(val *Validation, p Value) {
	if s, ok := p.New.(string); ok && len(validation.IsValidPercent(s)) == 0 && CountOf(s) > 100 {
		val.Invalid(p.Path, s, "must not be greater than 100%")
	}
}

// CountOf returns the number of a count or percentage, 0 if it is neither.
func CountOf(v any) int {
	switch v := v.(type) {
	case int64:
		return int(v)
	case string:
		if len(validation.IsValidPercent(v)) == 0 {
			v = strings.TrimSuffix(v, "%")
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}

// GroupOrUser validates the number of a user or a group.
func GroupOrUser(val *Validation, p Value) {
	if n, ok := p.New.(int64); ok && (n < 0 || n > math.MaxInt32) {
		val.Invalid(p.Path, n, validation.InclusiveRangeError(0, math.MaxInt32))
	}
}

// FileMode checks the permission bits of a file, if there are any.
func FileMode(val *Validation, p Value) {
	if n, ok := p.New.(int64); ok && (n < 0 || n > 0o777) {
		val.Invalid(p.Path, n, "must be a number between 0 and 0777 (octal), both inclusive")
	}
}

func preemptionPolicy(val *Validation, p Value) {
	switch s, ok := p.New.(string); {
	case !ok, s == "PreemptLowerPriority", s == "Never":
	case s == "":
		val.Required(p.Path, "")
	default:
		val.Unsupported(p.Path, s, "PreemptLowerPriority", "Never")
	}
}

func nonnegativeQuantity(val *Validation, p Value) {
	if p.New == nil {
		return
	}
	if q := Quantity(p.New); q.Sign() < 0 {
		val.Invalid(p.Path, q.String(), "must be greater than or equal to 0")
	}
}

// DriverName checks the required name of a driver.
func DriverName(val *Validation, p Value) { driverName(val, p, driver) }

// AnyDriver is DriverName with the error text of Kubernetes' declarative rules.
//
//lint:ignore SA1019 kube's rule
func AnyDriver(val *Validation, p Value) { driverName(val, p, content.IsDNS1123SubdomainCaseless) }

func driverName(val *Validation, p Value, format func(string) []string) {
	name, _ := p.New.(string)
	if name == "" {
		val.Required(p.Path, "")
		return
	}
	if len(name) > 63 {
		val.Add(field.TooLong(p.Path, "", 63))
	}
	val.Invalids(p.Path, name, format(name))
}
