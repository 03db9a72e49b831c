package why

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/request"
)

// grants returns the roles that would allow a request if they were bound to u, the least powerful first. Roles of
// Kubernetes' own components are included only if there are no others.
func grants(roles []Role, u user.Info, info *request.Info) []Grant {
	var found, system []candidate
	for i := range roles {
		r := &roles[i]
		if r.Namespace != "" && (!info.IsResource || r.Namespace != info.Namespace) {
			continue
		}
		at := slices.IndexFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return rbac.Allows(&rule, info) })
		switch {
		case at < 0:
		case strings.HasPrefix(r.Name, "system:"):
			system = append(system, candidate{r, at, Power(r.Rules)})
		default:
			found = append(found, candidate{r, at, Power(r.Rules)})
		}
	}
	if len(found) == 0 {
		found = system
	}
	var out []Grant
	for _, c := range weakest(found, mostGrants) {
		p := propose(u, info)
		ref := c.reference()
		p.RoleRef = &rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: ref.Kind, Name: ref.Name}
		out = append(out, Grant{Role: ref, Rule: c.Rules[c.rule], Binding: p, Power: c.power})
	}
	return out
}

// candidate is a role that allows a request by one of its rules.
type candidate struct {
	*Role
	rule  int
	power int64
}

// weakest returns the n least powerful roles, sorted. It omits a role with strictly more permissions than another one.
func weakest(all []candidate, n int) []candidate {
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.power, b.power), cmp.Compare(a.reference().String(), b.reference().String()))
	})
	var out []candidate
	for len(all) > 0 && len(out) < n {
		next := 0
		for i := 1; i < len(all); i++ {
			if exceeds(all[next].Rules, all[i].Rules) {
				next = i
			}
		}
		out = append(out, all[next])
		all = slices.Delete(all, next, next+1)
	}
	return out
}

// exceeds reports whether rules allow all that others do, and more.
func exceeds(rules, others []rbacv1.PolicyRule) bool {
	covers, _ := validation.Covers(rules, others)
	if !covers {
		return false
	}
	same, _ := validation.Covers(others, rules)
	return !same
}

// The weights of wildcards, and of missing resource names.
const (
	anyVerb, anyGroup, anyResource, anyURL = 12, 30, 60, 50
	anyName                                = 20
)

// Power returns a number for comparing roles: the sum over rules of the product of verbs, groups, resources and names.
// It does not measure danger.
func Power(rules []rbacv1.PolicyRule) (sum int64) {
	count := func(words []string, all int64) (n int64) {
		for _, w := range words {
			switch {
			case w == "*":
				return all
			case strings.Contains(w, "*"):
				n += all / 4
			default:
				n++
			}
		}
		return n
	}
	for i := range rules {
		r := &rules[i]
		verbs := count(r.Verbs, anyVerb)
		sum += verbs * count(r.NonResourceURLs, anyURL)
		names := int64(len(r.ResourceNames))
		if names == 0 {
			names = anyName
		}
		sum += verbs * count(r.APIGroups, anyGroup) * count(r.Resources, anyResource) * names
	}
	return sum
}
