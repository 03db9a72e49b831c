package rule

import (
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// standardFunctions are the functions that the text of any group may name.
func standardFunctions() Functions {
	return Functions{
		"nothing":    func(*Validation, Value) {},
		"driverName": DriverName,
		"anyDriver":  AnyDriver,
		"address": func(val *Validation, p Value) {
			s, _ := p.New.(string)
			val.Errs = append(val.Errs, val.IP(p.Path, s, nil)...)
		},
		"labels": func(val *Validation, p Value) {
			val.Errs = append(val.Errs, unversioned.ValidateLabels(StringMap(p.New), p.Path)...)
		},
		"nonnegativeQuantity": nonnegativeQuantity,
		"preemptionPolicy":    preemptionPolicy,
		"selector":            checkSelector,
	}
}
