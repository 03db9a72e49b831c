// Package quota holds the objects of a namespace to what its ResourceQuotas allow.
//
// An evaluator says of one kind of objects by which names quotas limit it, what an object of the kind amounts to, and
// which scopes it is in. Pods, claims of storage and of devices, and services have evaluators of their own; objects of
// every other kind, custom ones too, are counted ("count/<plural>.<group>"). check is kube's admission: pure, from
// quotas, a write and what there is. ledger knows what there is: the sums of what lies in the view.
//
// Plugin is kube's admission plugin ResourceQuota, last among those that validate a write. A write that needs more of
// anything is compared with what is in the view, and happens in sequence with the others of its namespace
// (admit.Sequence): under a lock in this process, and among replicas by a condition of the transaction that stores the
// object. So two writers cannot take the last place both, a write that fails has taken nothing, and what is deleted is
// free at once. The controller (quotas) keeps the status of each quota equal to the sums.
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

// measure is what an object amounts to.
type measure struct {
	amounts amounts
	// scopes are what decides about the scopes that the object is in; nil if it is in none.
	scopes scopes
	// until is when the object amounts only to what after says; zero is never.
	until time.Time
	after amounts
}

// at returns what the object amounts to at a time.
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

// evaluator says how quotas limit objects of one kind.
type evaluator struct {
	// handles reports whether a write may change what is limited.
	handles func(a *admit.Attributes) bool
	// limits reports whether a name of a quota limits objects of the kind.
	limits func(name string) bool
	// measure says what an object amounts to. raw is its JSON.
	measure func(raw []byte) (*measure, error)
	// lacks returns what a new object must say because a quota limits it, "" for nothing. Nil is for nothing ever.
	lacks func(required []corev1.ResourceName, raw []byte) string
	// mayAdd reports whether objects of the kind may amount to something of a name all the same; nil is never.
	mayAdd func(name string) bool
	// changing is true if a measure depends on other objects, and must not be kept.
	changing bool
}

// Counted reports whether quotas count objects of a resource. Events come and go by themselves.
func Counted(r *catalog.Resource) bool {
	return r.Namespaced && !r.Virtual && !r.Secondary && !(r.Plural == "events" &&
		(r.Group == "" || r.Group == "events.k8s.io"))
}

// aliases are the resources of the core group that have a name without "count/", and nothing but their number.
var aliases = []string{"configmaps", "replicationcontrollers", "resourcequotas", "secrets"}

// evaluatorOf returns the evaluator of a resource that is counted.
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

// counter is the evaluator of objects that are only counted.
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

// limited returns which of names limit objects of the kind.
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

// in returns those requirements that hold for an object.
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

// requirementsOf returns what a quota asks of the objects that it limits.
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
