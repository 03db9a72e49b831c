package policy

import (
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/admit/source"
)

// bound is a policy with its bindings, at least one.
type bound[P any] struct {
	policy   P
	bindings []*binding
}

// named is a compiled policy.
type named interface{ policyName() string }

// policies holds all policies of one kind: from files, and from the view. M is a policy in a file.
type policies[M any, P named] struct {
	mutating  bool
	stored    *source.Source[P]
	bindings  *source.Source[*binding]
	compile   func(M) bound[P]
	manifests source.Derived[M, *source.List[bound[P]]]
	bound     source.Joined[P, *binding, *source.List[bound[P]]]
	all       source.Joined[bound[P], bound[P], []bound[P]]
}

// concerned returns the policies that may match a write: first the ones in files, then the stored ones, both in the
// order of their names. Only policies in files match policies and bindings.
func (s *policies[M, P]) concerned(c *Config, manifests *source.List[M], a *admit.Attributes) []bound[P] {
	files := s.manifests.Get(manifests, func(list []M) *source.List[bound[P]] {
		var all []bound[P]
		for _, m := range list {
			if b := s.compile(m); len(b.bindings) > 0 {
				all = append(all, b)
			}
		}
		return source.Fixed(all)
	})
	stored := s.bound.Get(s.stored.List(), s.bindings.List(), bind[P])
	all := s.all.Get(files, stored, func(files, stored []bound[P]) []bound[P] {
		all := slices.Concat(files, stored)
		s.keepMetrics(c, all)
		return all
	})
	switch {
	case len(all) == 0 || match.IsReview(a.Resource):
		return nil
	case match.ExemptFromPolicies(a.Resource):
		return files.Items
	}
	return all
}

// bind returns the policies that have bindings, both in the order of their names.
func bind[P named](policies []P, bindings []*binding) *source.List[bound[P]] {
	by := map[string][]*binding{}
	for _, b := range bindings {
		by[b.policy] = append(by[b.policy], b)
	}
	var out []bound[P]
	for _, p := range policies {
		if list := by[p.policyName()]; len(list) > 0 {
			out = append(out, bound[P]{p, list})
		}
	}
	slices.SortStableFunc(out, func(x, y bound[P]) int {
		return strings.Compare(x.policy.policyName(), y.policy.policyName())
	})
	return source.Fixed(out)
}

// keepMetrics drops the metrics of policies and bindings that are no longer in force.
func (s *policies[M, P]) keepMetrics(c *Config, all []bound[P]) {
	names, bindings := map[string]bool{}, map[string]bool{}
	for _, b := range all {
		names[b.policy.policyName()] = true
		for _, one := range b.bindings {
			bindings[one.name] = true
		}
	}
	c.Metrics.KeepPolicies(s.mutating, names, bindings)
}
