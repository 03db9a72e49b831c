package core

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// outside returns the violations of a limit by the requests and limits of a container or pod. Nil errors mean none.
func outside(limit *corev1.LimitRangeItem, requests, most amount) (errs []error) {
	for name, bound := range sorted(limit.Min) {
		errs = append(errs, below(limit.Type, name, bound, requests, most))
	}
	for name, bound := range sorted(limit.Max) {
		errs = append(errs, above(limit.Type, name, bound, requests, most))
	}
	for name, bound := range sorted(limit.MaxLimitRequestRatio) {
		errs = append(errs, spread(limit.Type, name, bound, requests, most))
	}
	return errs
}

// sorted iterates over a list by name. In Kubernetes the order is random.
func sorted(list corev1.ResourceList) iter.Seq2[string, resource.Quantity] {
	return func(yield func(string, resource.Quantity) bool) {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if !yield(string(name), list[name]) {
				return
			}
		}
	}
}

func below(of corev1.LimitType, name string, bound resource.Quantity, requests, most amount) error {
	request, requested := requests[name]
	limit, limited := most[name]
	r, l, b := comparable3(request, limit, bound)
	switch {
	case !requested:
		return fmt.Errorf("minimum %s usage per %s is %s.  No request is specified", name, of, bound.String())
	case r < b:
		return fmt.Errorf("minimum %s usage per %s is %s, but request is %s", name, of, bound.String(),
			request.String())
	case limited && l < b:
		return fmt.Errorf("minimum %s usage per %s is %s, but limit is %s", name, of, bound.String(), limit.String())
	}
	return nil
}

func above(of corev1.LimitType, name string, bound resource.Quantity, requests, most amount) error {
	request, requested := requests[name]
	limit, limited := most[name]
	r, l, b := comparable3(request, limit, bound)
	switch {
	case !limited:
		return fmt.Errorf("maximum %s usage per %s is %s.  No limit is specified", name, of, bound.String())
	case l > b:
		return fmt.Errorf("maximum %s usage per %s is %s, but limit is %s", name, of, bound.String(), limit.String())
	case requested && r > b:
		return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, of, bound.String(),
			request.String())
	}
	return nil
}

// claimAbove is above for claims, which have only requests.
func claimAbove(of corev1.LimitType, name string, bound resource.Quantity, requests amount) error {
	request, requested := requests[name]
	r, _, b := comparable3(request, resource.Quantity{}, bound)
	switch {
	case !requested:
		return fmt.Errorf("maximum %s usage per %s is %s.  No request is specified", name, of, bound.String())
	case r > b:
		return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, of, bound.String(),
			request.String())
	}
	return nil
}

// spread bounds how many times its request a limit may be.
func spread(of corev1.LimitType, name string, bound resource.Quantity, requests, most amount) error {
	request, requested := requests[name]
	limit, limited := most[name]
	r, l, _ := comparable3(request, limit, bound)
	switch {
	case !requested || r == 0:
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but no request is specified or request is 0",
			name, of, bound.String())
	case !limited || l == 0:
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name,
			of, bound.String())
	}
	ratio, allowed := float64(l)/float64(r), float64(bound.Value())
	seen := ratio
	if bound.Value() <= resource.MaxMilliValue {
		ratio, allowed = ratio*1000, float64(bound.MilliValue())
	}
	if ratio > allowed {
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, of,
			bound.String(), seen)
	}
	return nil
}

// comparable3 returns three quantities in one unit: thousandths, unless one of them is too large.
func comparable3(a, b, c resource.Quantity) (x, y, z int64) {
	if x, y, z = a.Value(), b.Value(), c.Value(); max(x, y, z) <= resource.MaxMilliValue {
		return a.MilliValue(), b.MilliValue(), c.MilliValue()
	}
	return x, y, z
}
