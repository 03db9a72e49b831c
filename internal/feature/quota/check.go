package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// write is a write as quotas see it.
type write struct {
	evaluator   *evaluator
	resource    catalog.GroupResource
	subresource string
	raw         []byte // the new object
	obj, old    *measure
}

// charge is the usage that a write adds to one quota.
type charge struct {
	quota  *corev1.ResourceQuota
	amount amounts
}

// refusal is an error that means that the write is forbidden.
type refusal struct{ error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// assess returns the charges of a write to the quotas of its namespace, or the error if it is forbidden regardless of
// usage. limited are resources that are forbidden in a namespace unless a quota covers them.
func (w *write) assess(quotas []*corev1.ResourceQuota, limited []configuration.Limited) ([]charge, error) {
	var must []requirement // scopes that a quota must cover
	for _, l := range limited {
		holds, err := w.evaluator.in(w.obj, l.MatchScopes)
		if err != nil {
			return nil, nil // as in Kubernetes
		}
		must = append(must, holds...)
	}
	var concerned []*corev1.ResourceQuota
	names := map[corev1.ResourceName]bool{} // covered by a quota
	var covered []requirement
	for _, q := range quotas {
		requirements := requirementsOf(q)
		holds, err := w.evaluator.in(w.obj, requirements)
		if err != nil {
			return nil, fmt.Errorf("error matching scopes of quota %s, err: %w", q.Name, err)
		}
		covered = append(covered, holds...)
		restricted := w.evaluator.limited(sortedNames(q.Status.Hard))
		if len(restricted) == 0 || len(holds) < len(requirements) {
			continue
		}
		if err := w.checkRestricted(q, restricted); err != nil {
			return nil, err
		}
		concerned = append(concerned, q)
		for _, name := range restricted {
			names[name] = true
		}
	}
	if negative := w.negative(); len(negative) > 0 {
		return nil, refuse("quota usage is negative for resource(s): %s", printNames(negative))
	}
	charges, needs, err := w.charges(concerned)
	if err != nil || !needs {
		return nil, err
	}
	if missing := w.uncovered(limited, names); len(missing) > 0 {
		return nil, refuse("insufficient quota to consume: %s", printNames(missing))
	}
	must = slices.DeleteFunc(must, func(m requirement) bool {
		return slices.ContainsFunc(covered, func(c requirement) bool { return c.ScopeName == m.ScopeName })
	})
	if len(must) > 0 {
		return nil, fmt.Errorf("insufficient quota to match these scopes: %v", must)
	}
	return charges, nil
}

// checkRestricted rejects an object without the requests or limits that a quota requires, and an object of a quota
// without a status.
func (w *write) checkRestricted(q *corev1.ResourceQuota, restricted []corev1.ResourceName) error {
	if w.evaluator.lacks != nil {
		if why := w.evaluator.lacks(restricted, w.raw); why != "" {
			return refuse("failed quota: %s: %s", q.Name, why)
		}
	}
	for _, name := range restricted {
		if _, known := q.Status.Used[name]; !known {
			return refuse("status unknown for quota: %s, resources: %s", q.Name, printNames(restricted))
		}
	}
	return nil
}

func (w *write) negative() (names []corev1.ResourceName) {
	for name, q := range w.obj.amounts {
		if q.Sign() < 0 {
			names = append(names, name)
		}
	}
	return names
}

// charges returns the charges of the write to each quota concerned. needs is false if it adds no usage.
func (w *write) charges(concerned []*corev1.ResourceQuota) (out []charge, needs bool, err error) {
	more := w.obj.amounts
	if w.old != nil {
		more = difference(w.obj.amounts, w.old.amounts)
	}
	if len(concerned) == 0 {
		return nil, len(nonZero(more)) > 0, nil
	}
	for _, q := range concerned {
		amount := more
		if w.old != nil {
			if counted, err := w.old.inAll(requirementsOf(q)); err != nil {
				return nil, false, err
			} else if !counted { // this write moves it into the quota's scope
				amount = w.obj.amounts
			}
		}
		if amount = nonZero(amount); len(amount) == 0 {
			continue
		}
		needs = true
		if amount = masked(amount, sortedNames(q.Status.Hard)); len(amount) > 0 {
			out = append(out, charge{q, amount})
		}
	}
	return out, needs, nil
}

// uncovered returns the limited resources of the object that no quota covers.
func (w *write) uncovered(limited []configuration.Limited, names map[corev1.ResourceName]bool) []corev1.ResourceName {
	out := map[corev1.ResourceName]bool{}
	for _, l := range limited {
		if l.Group != w.resource.Group || l.Resource != w.resource.Resource {
			continue
		}
		for name, q := range w.obj.amounts {
			matches := func(part string) bool { return strings.Contains(string(name), part) }
			if q.Sign() > 0 && !names[name] && slices.ContainsFunc(l.MatchContains, matches) {
				out[name] = true
			}
		}
	}
	return slices.Collect(maps.Keys(out))
}

// fits rejects a charge that exceeds its quota, given the current usage. For a quota, a write to status has already
// happened.
func (w *write) fits(c charge, used amounts) error {
	if w.subresource == "status" {
		return nil
	}
	var exceeded []corev1.ResourceName
	for name, more := range c.amount {
		sum := used[name].DeepCopy()
		quantity.Add(&sum, more)
		if hard := c.quota.Status.Hard[name]; quantity.Cmp(sum, hard) > 0 {
			exceeded = append(exceeded, name)
		}
	}
	if len(exceeded) == 0 {
		return nil
	}
	return refuse("exceeded quota: %s, requested: %s, used: %s, limited: %s", c.quota.Name,
		printAmounts(masked(c.amount, exceeded)), printAmounts(masked(used, exceeded)),
		printAmounts(masked(c.quota.Status.Hard, exceeded)))
}
