package core

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// limits applies the LimitRanges of a namespace: it sets defaults of containers, and rejects violating pods and claims.
type limits struct{ view *watchcache.View }

// LimitRanger sets the defaults of LimitRanges and rejects violations.
func LimitRanger(c plugin.Config) []plugin.Rule {
	l := limits{c.View}
	return []plugin.Rule{
		{Plural: "pods", Operations: plugin.Creates, Mutate: l.fill, Validate: l.checkPod},
		{Plural: "pods", Subresource: "resize", Operations: plugin.Updates, Mutate: l.fill, Validate: l.checkPod},
		{Plural: "persistentvolumeclaims", Operations: plugin.Writes, Validate: l.checkClaim},
	}
}

// of returns the LimitRanges that a write is under, in the order of their names: none if the object is being deleted.
func (l limits) of(a *admit.Attributes) ([]*corev1.LimitRange, error) {
	all := l.view.Collection(ref.LimitRanges.Prefix).Snapshot()
	if all.Count(a.Namespace, "") == 0 || catalog.Text(a.Old, "metadata", "deletionTimestamp") != "" {
		return nil, nil
	}
	var out []*corev1.LimitRange
	var err error
	all.Scan(a.Namespace, "", func(e *watchcache.Entry) bool {
		var r *corev1.LimitRange
		r, err = plugin.Decode[corev1.LimitRange](e)
		out = append(out, r)
		return err == nil
	})
	return out, err
}

// limitAnnotation lists the defaults that were set.
const limitAnnotation = "kubernetes.io/limit-ranger"

func (l limits) fill(_ context.Context, a *admit.Attributes) error {
	ranges, err := l.of(a)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		requests, most := containerDefaults(r)
		var done []string
		for _, list := range []struct{ name, container string }{{"containers", "container"},
			{"initContainers", "init container"}} {
			containers, _ := catalog.At(a.Object, "spec")[list.name].([]any)
			containers = slices.Clone(containers)
			before := len(done)
			for i, c := range containers {
				if c, ok := c.(object); ok {
					containers[i], done = fillContainer(c, requests, most, list.container, done)
				}
			}
			if len(done) > before {
				a.Edit("spec")[list.name] = containers
			}
		}
		if len(done) > 0 {
			a.Edit("metadata", "annotations")[limitAnnotation] = "LimitRanger plugin set: " + strings.Join(done, "; ")
		}
	}
	return nil
}

// containerDefaults returns the default requests and limits of containers.
func containerDefaults(r *corev1.LimitRange) (requests, most corev1.ResourceList) {
	requests, most = corev1.ResourceList{}, corev1.ResourceList{}
	for _, limit := range r.Spec.Limits {
		if limit.Type == corev1.LimitTypeContainer {
			maps.Copy(requests, limit.DefaultRequest)
			maps.Copy(most, limit.Default)
		}
	}
	return requests, most
}

// fillContainer returns a container with missing amounts set, and done with the amounts that were set.
func fillContainer(c object, requests, most corev1.ResourceList, noun string, done []string) (object, []string) {
	for _, part := range []struct {
		name, word string
		list       corev1.ResourceList
	}{{"requests", "request", requests}, {"limits", "limit", most}} {
		have := catalog.At(c, "resources", part.name)
		filled := maps.Clone(have)
		var names []string
		for name, q := range part.list {
			if _, ok := have[string(name)]; ok {
				continue
			}
			if filled == nil {
				filled = object{}
			}
			filled[string(name)] = q.String()
			names = append(names, string(name))
		}
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		done = append(done,
			fmt.Sprintf("%s %s for %s %s", strings.Join(names, ", "), part.word, noun, catalog.Text(c, "name")))
		c = plugin.With(c, "resources", plugin.With(catalog.At(c, "resources"), part.name, filled))
	}
	return c, done
}

func (l limits) checkPod(_ context.Context, a *admit.Attributes) error {
	return l.check(a, func(limit *corev1.LimitRangeItem) []error {
		spec := catalog.At(a.Object, "spec")
		switch limit.Type {
		case corev1.LimitTypeContainer:
			var errs []error
			for _, list := range []string{"containers", "initContainers"} {
				for _, c := range catalog.Objects(spec[list]) {
					errs = append(errs, outside(limit, pod.Amounts(c, "requests"), pod.Amounts(c, "limits"))...)
				}
			}
			return errs
		case corev1.LimitTypePod:
			return outside(limit, podTotal(spec, "requests"), podTotal(spec, "limits"))
		}
		return nil
	})
}

// podTotal is the total of a pod: its own values for CPU and memory if set, else the sum of its containers.
func podTotal(spec object, list string) amount {
	total := pod.Total(spec, list)
	own := pod.Amounts(spec, list)
	for _, name := range []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory)} {
		if q, ok := own[name]; ok {
			total[name] = q
		}
	}
	return total
}

func (l limits) checkClaim(_ context.Context, a *admit.Attributes) error {
	return l.check(a, func(limit *corev1.LimitRangeItem) (errs []error) {
		if limit.Type != corev1.LimitTypePersistentVolumeClaim {
			return nil
		}
		requests := pod.Amounts(catalog.At(a.Object, "spec"), "requests")
		for name, bound := range sorted(limit.Min) {
			errs = append(errs, below(limit.Type, name, bound, requests, nil))
		}
		for name, bound := range sorted(limit.Max) {
			errs = append(errs, claimAbove(limit.Type, name, bound, requests))
		}
		return errs
	})
}

// check checks each limit, and rejects the write with all violations of the first violated LimitRange.
func (l limits) check(a *admit.Attributes, broken func(*corev1.LimitRangeItem) []error) error {
	ranges, err := l.of(a)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		var errs []error
		for i := range r.Spec.Limits {
			errs = append(errs, broken(&r.Spec.Limits[i])...)
		}
		if err := utilerrors.NewAggregate(errs); err != nil {
			return admit.Forbidden(a, err)
		}
	}
	return nil
}

// amount is a quantity for each resource.
type amount = map[string]resource.Quantity
