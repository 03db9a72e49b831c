package check

import (
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// valueFunctions look at one value.
func valueFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"labels": func(j *judgement, p place) {
			j.errs = append(j.errs, unversioned.ValidateLabels(pairs(p.value), p.path)...)
		},
		"selector":            checkSelector,
		"portOrName":          portOrName,
		"percent":             percent,
		"id":                  groupOrUser,
		"mode":                fileMode,
		"preemptionPolicy":    preemptionPolicy,
		"nonnegativeQuantity": nonnegativeQuantity,
		"driverName":          driverName,
		"notEmpty":            notEmpty,
		"controller":          func(j *judgement, p place) { j.domainPath(p) },
		"sameText":            sameText,
		"lowered":             lowered,
	}
}

// checkSelector judges a label selector, if there is one.
func checkSelector(j *judgement, p place) { j.selects(p.value, selectorValues, p.path) }

func (j *judgement) domainPath(p place) {
	s, _ := p.value.(string)
	j.errs = append(j.errs, validation.IsDomainPrefixedPath(p.path, s)...)
}

// portOrName judges a port that may be the name of one. 0 is no port.
func portOrName(j *judgement, p place) {
	switch v := p.value.(type) {
	case string:
		j.invalids(p.path, v, validation.IsValidPortName(v))
	case int64:
		j.invalids(p.path, v, validation.IsValidPortNum(int(v)))
	default:
		j.invalids(p.path, int64(0), validation.IsValidPortNum(0))
	}
}

// percent judges a count or a share of at most all.
func percent(j *judgement, p place) {
	j.count(p)
	j.atMostAll(p)
}

// count judges a number, or a percentage.
func (j *judgement) count(p place) {
	switch v := p.value.(type) {
	case string:
		j.invalids(p.path, v, validation.IsValidPercent(v))
	case int64:
		if v < 0 {
			j.invalid(p.path, v, "must be greater than or equal to 0")
		}
	}
}

func (j *judgement) atMostAll(p place) {
	if s, ok := p.value.(string); ok && len(validation.IsValidPercent(s)) == 0 && countOf(s) > 100 {
		j.invalid(p.path, s, "must not be greater than 100%")
	}
}

// countOf returns the number of a count or percentage, 0 if it is neither.
func countOf(v any) int {
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

// groupOrUser judges the number of a user or a group.
func groupOrUser(j *judgement, p place) {
	if n, ok := p.value.(int64); ok && (n < 0 || n > math.MaxInt32) {
		j.invalid(p.path, n, validation.InclusiveRangeError(0, math.MaxInt32))
	}
}

func fileMode(j *judgement, p place) {
	if n, ok := p.value.(int64); ok && (n < 0 || n > 0o777) {
		j.invalid(p.path, n, "must be a number between 0 and 0777 (octal), both inclusive")
	}
}

func preemptionPolicy(j *judgement, p place) {
	switch s, ok := p.value.(string); {
	case !ok, s == "PreemptLowerPriority", s == "Never":
	case s == "":
		j.required(p.path, "")
	default:
		j.unsupported(p.path, s, "PreemptLowerPriority", "Never")
	}
}

func nonnegativeQuantity(j *judgement, p place) {
	if p.value == nil {
		return
	}
	if q := quantity(p.value); q.Sign() < 0 {
		j.invalid(p.path, q.String(), "must be greater than or equal to 0")
	}
}

func driverName(j *judgement, p place) {
	name, _ := p.value.(string)
	if name == "" {
		j.required(p.path, "")
		return
	}
	if len(name) > 63 {
		j.add(field.TooLong(p.path, "", 63))
	}
	j.invalids(p.path, name, driver(name))
}

// notEmpty refuses a text that is there and empty.
func notEmpty(j *judgement, p place) {
	if p.value == "" {
		j.required(p.path, "")
	}
}

// lowered judges a name in lower case, and shows it so.
func lowered(j *judgement, p place) {
	if s, _ := p.value.(string); s != "" {
		s = strings.ToLower(s)
		j.invalids(p.path, s, validation.IsQualifiedName(s))
	}
}

// sameText is "same" for a text that is left out where it is empty, and shown as such.
func sameText(j *judgement, p place) {
	was, _ := p.old.(string)
	if s, _ := p.value.(string); j.old != nil && s != was {
		j.invalid(p.path, s, "field is immutable")
	}
}

// resourceQuantity judges an amount of a resource.
func (j *judgement) resourceQuantity(name string, v any, path *field.Path) {
	q := quantity(v)
	if q.Cmp(resource.Quantity{}) < 0 {
		j.invalid(path, q.String(), "must be greater than or equal to 0")
	}
	if counted(name) && q.MilliValue()%1000 != 0 {
		j.invalid(path, q.String(), "must be an integer")
	}
}
