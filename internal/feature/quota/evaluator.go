// Package quota enforces ResourceQuotas.
//
// An evaluator defines, for one kind of object, the names by which quotas limit it, the usage of an object, and the
// scopes that an object is in. Pods, persistent volume claims, resource claims and services have evaluators of their
// own; objects of every other kind, custom ones too, are counted ("count/<plural>.<group>"). check is Kubernetes'
// admission check: a pure function of quotas, a write and the current usage. ledger computes the usage from the objects
// in the view.
//
// Plugin is Kubernetes' admission plugin ResourceQuota, the last validating plugin. A write that adds usage is checked
// against the view, and serialized with the other such writes of its namespace (admit.Sequence): by a lock in this
// process, and between replicas by a condition of the transaction that stores the object. So two writers cannot both
// take the last place, a failed write uses nothing, and a deletion frees its usage at once. The controller (quotas)
// keeps the status of each quota equal to the sums.
//
// Plugin and ledger are safe for concurrent use. Source: k8s.io/kubernetes/pkg/quota/v1 and
// k8s.io/apiserver/pkg/admission/plugin/resourcequota.
package quota

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// requirement is a scope of a quota, or an expression about one.
type requirement = corev1.ScopedResourceSelectorRequirement

// measure is the usage of an object.
type measure struct {
	amounts amounts
	// scopes decides which scopes the object is in; nil if it is in none.
	scopes scopes
	// until is the time from which the usage is only after; zero means never.
	until time.Time
	after amounts
}

// at returns the usage of the object at a time.
func (m *measure) at(now time.Time) amounts {
	if !m.until.IsZero() && now.After(m.until) {
		return m.after
	}
	return m.amounts
}

// scopes decide about the scopes that an object is in.
type scopes interface {
	in(requirement) (bool, error)
}

// evaluator defines how quotas limit objects of one kind.
type evaluator struct {
	// handles reports whether a write may change the usage.
	handles func(a *admit.Attributes) bool
	// limits reports whether a name of a quota limits objects of the kind.
	limits func(name string) bool
	// measure returns the usage of an object. raw is its JSON.
	measure func(raw []byte) (*measure, error)
	// lacks returns the values that a new object must set because a quota limits them, "" for none. Nil means that no
	// values are required.
	lacks func(required []corev1.ResourceName, raw []byte) string
	// mayAdd reports whether objects of the kind may also use a resource of a name; nil means never.
	mayAdd func(name string) bool
	// changing is true if a measure depends on other objects, and must not be kept.
	changing bool
}

// Counted reports whether quotas count objects of a resource. Events are not counted.
func Counted(r *catalog.Resource) bool {
	return r.Namespaced && !r.Virtual && !r.Secondary && !(r.Plural == "events" &&
		(r.Group == "" || r.Group == "events.k8s.io"))
}

// aliases are the resources of the core group that a quota also counts by a name without "count/" ("secrets"). A quota
// limits only their number.
var aliases = []string{"configmaps", "replicationcontrollers", "resourcequotas", "secrets"}

// evaluatorOf returns the evaluator of a counted resource.
func (l *ledger) evaluatorOf(r *catalog.Resource) *evaluator {
	if e := l.evaluators[catalog.GroupResource{Group: r.Group, Resource: r.Plural}]; e != nil {
		return e
	}
	names := []string{"count/" + r.Qualified()}
	if r.Group == "" && slices.Contains(aliases, r.Plural) {
		names = append(names, r.Plural)
	}
	return counter(names)
}

// counter returns the evaluator of objects that are only counted.
func counter(names []string) *evaluator {
	m := &measure{amounts: amounts{}}
	for _, name := range names {
		m.amounts[corev1.ResourceName(name)] = one()
	}
	return &evaluator{
		handles: func(a *admit.Attributes) bool { return a.Subresource == "" && a.Operation == admit.Create },
		limits:  func(name string) bool { return slices.Contains(names, name) },
		measure: func([]byte) (*measure, error) { return m, nil },
	}
}

// limited returns the names that limit objects of the kind.
func (e *evaluator) limited(names []corev1.ResourceName) []corev1.ResourceName {
	var out []corev1.ResourceName
	for _, name := range names {
		if e.limits(string(name)) {
			out = append(out, name)
		}
	}
	return out
}

// adds reports whether objects of the kind may amount to something of a name.
func (e *evaluator) adds(name corev1.ResourceName) bool {
	return e.limits(string(name)) || e.mayAdd != nil && e.mayAdd(string(name))
}

// in returns the requirements that an object satisfies.
func (e *evaluator) in(m *measure, list []requirement) (out []requirement, err error) {
	for _, r := range list {
		holds, err := m.in(r)
		if err != nil {
			return nil, err
		}
		if holds {
			out = append(out, r)
		}
	}
	return out, nil
}

func (m *measure) in(r requirement) (bool, error) {
	if m.scopes == nil {
		return false, nil
	}
	return m.scopes.in(r)
}

// inAll reports whether all requirements hold for an object.
func (m *measure) inAll(list []requirement) (bool, error) {
	for _, r := range list {
		if holds, err := m.in(r); err != nil || !holds {
			return false, err
		}
	}
	return true, nil
}

// requirementsOf returns the scope requirements of a quota.
func requirementsOf(q *corev1.ResourceQuota) []requirement {
	var out []requirement
	for _, scope := range q.Spec.Scopes {
		out = append(out, requirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		out = append(out, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return out
}

// typed decodes JSON as a Go type.
func typed[T any](raw []byte) (*T, error) {
	out := new(T)
	return out, json.Unmarshal(raw, out)
}

// native reports whether a resource of pods is Kubernetes' own and not extended.
func native(name string) bool {
	return !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix)
}
