package escalation

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

const (
	// mostWork bounds the comparisons of a check: of each combination of a group, resource, verb and name in the rules
	// with each entry of the permissions that the user has. So many take one or two seconds.
	mostWork = 20_000_000
	// mostLacking bounds the combinations in an error. Their text is longer than the longest message.
	mostLacking = 50_000
)

var errCombinations = errors.New("the rules combine too many groups, resources, verbs and names to compare them " +
	"with the permissions currently held: divide them into several roles")

// lacking returns the permissions of the rules that the held rules do not cover, each with one group, resource, verb
// and name. The error is about rules with too many combinations, or that of ctx.
//
// Kubernetes' library makes all combinations of a rule before it compares them: a rule of 20 KB has 27 million. So it
// gets one resource of a rule at a time.
func lacking(ctx context.Context, held, rules []rbacv1.PolicyRule) (out []rbacv1.PolicyRule, err error) {
	entries := int64(1)
	for i := range held {
		entries += 1 + size(&held[i])
	}
	work := int64(0)
	for i := range rules {
		for part := range parts(&rules[i]) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if work += combinations(&part) * entries; work > mostWork {
				return nil, errCombinations
			}
			if _, more := validation.Covers(held, []rbacv1.PolicyRule{part}); len(out) < mostLacking {
				out = append(out, more...)
			}
		}
	}
	return out, nil
}

// parts yields a rule for each resource of each group of a rule, and a rule for its paths, in the library's order.
func parts(r *rbacv1.PolicyRule) func(func(rbacv1.PolicyRule) bool) {
	return func(yield func(rbacv1.PolicyRule) bool) {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				if !yield(rbacv1.PolicyRule{
					APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: r.ResourceNames,
					Verbs: r.Verbs,
				}) {
					return
				}
			}
		}
		if len(r.NonResourceURLs) > 0 {
			yield(rbacv1.PolicyRule{NonResourceURLs: r.NonResourceURLs, Verbs: r.Verbs})
		}
	}
}

// combinations returns the combinations of one resource, or of paths.
func combinations(r *rbacv1.PolicyRule) int64 {
	return int64(len(r.Verbs)) * int64(max(1, len(r.ResourceNames))) * int64(max(1, len(r.NonResourceURLs)))
}

func size(r *rbacv1.PolicyRule) int64 {
	return int64(len(r.Verbs) + len(r.APIGroups) + len(r.Resources) + len(r.ResourceNames) + len(r.NonResourceURLs))
}
