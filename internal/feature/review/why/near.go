package why

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/request"
)

// lacks returns the parts of a request that a rule does not cover in a binding of a namespace, "" for a cluster-wide
// one. It is empty if the rule allows the request.
//
// A rule allows a request that it covers in every part. So lacks checks each part separately with the authorizer, by a
// rule with this part and wildcards for the others.
func lacks(r *rbacv1.PolicyRule, namespace string, info *request.Info) (missing []Missing) {
	all := []string{"*"}
	covers := func(r rbacv1.PolicyRule) bool { return rbac.Allows(&r, info) }
	if !covers(rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: all, Resources: all, NonResourceURLs: all}) {
		missing = append(missing, Missing{Part: PartVerb, Wanted: info.Verb, Has: r.Verbs})
	}
	if !info.IsResource {
		if !covers(rbacv1.PolicyRule{Verbs: all, NonResourceURLs: r.NonResourceURLs}) {
			missing = append(missing, Missing{Part: PartURL, Wanted: info.Path, Has: r.NonResourceURLs})
		}
	} else {
		if !covers(rbacv1.PolicyRule{Verbs: all, APIGroups: r.APIGroups, Resources: all}) {
			missing = append(missing, Missing{Part: PartGroup, Wanted: info.Group, Has: r.APIGroups})
		}
		if !covers(rbacv1.PolicyRule{Verbs: all, APIGroups: all, Resources: r.Resources}) {
			missing = append(missing, Missing{Part: PartResource, Wanted: resource(info), Has: r.Resources})
		}
		if !covers(rbacv1.PolicyRule{
			Verbs: all, APIGroups: all, Resources: all, ResourceNames: r.ResourceNames,
		}) {
			missing = append(missing, Missing{Part: PartName, Wanted: info.Name, Has: r.ResourceNames})
		}
	}
	if namespace != "" && (!info.IsResource || namespace != info.Namespace) {
		missing = append(missing, Missing{Part: PartNamespace, Wanted: info.Namespace, Has: []string{namespace}})
	}
	for i := range missing {
		missing[i].Note = note(&missing[i])
	}
	return missing
}

// far is the distance from which a rule counts as unrelated.
const far = 7

// distances are the distances of a rule from a request by missing part. A part that looks like a mistake has distance
// 1.
var distances = map[string]int{PartName: 1, PartVerb: 2, PartNamespace: 3, PartResource: 5, PartGroup: 5, PartURL: 5}

func (n *Near) distance() (d int) {
	for i := range n.Missing {
		if n.Missing[i].Note != "" {
			d++
		} else {
			d += distances[n.Missing[i].Part]
		}
	}
	return d
}

// nearest returns the rules with the smallest nonzero distance.
func nearest(all []Near) []Near {
	all = slices.DeleteFunc(all, func(n Near) bool { return len(n.Missing) == 0 || n.distance() >= far || n.other() })
	slices.SortStableFunc(all, func(a, b Near) int {
		return cmp.Or(cmp.Compare(a.distance(), b.distance()), cmp.Compare(len(a.Missing), len(b.Missing)),
			cmp.Compare(a.Binding.String(), b.Binding.String()))
	})
	return all[:min(len(all), mostNear)]
}

// other reports whether a rule is about other resources: access to something else does not help the user.
func (n *Near) other() bool {
	return slices.ContainsFunc(n.Missing, func(m Missing) bool {
		return (m.Part == PartResource || m.Part == PartGroup || m.Part == PartURL) && m.Note == ""
	})
}

// note describes the probable mistake in a missing part.
func note(m *Missing) string {
	for _, has := range m.Has {
		switch m.Part {
		case PartVerb:
			if strings.EqualFold(has, m.Wanted) {
				return "verbs are in lower case"
			}
		case PartGroup:
			if group, version, ok := strings.Cut(has, "/"); ok && version != "" && group == m.Wanted ||
				m.Wanted == "" && (has == "v1" || has == "core") {
				return "a rule names the group without its version; the core group is \"\""
			}
		case PartResource:
			if text := noteResource(has, m.Wanted); text != "" {
				return text
			}
		case PartURL:
			if strings.TrimSuffix(has, "/") == strings.TrimSuffix(m.Wanted, "/") {
				return "paths with and without a final slash differ"
			}
		}
	}
	return ""
}

func noteResource(has, wanted string) string {
	resource, sub, below := strings.Cut(wanted, "/")
	hasResource, hasSub, hasBelow := strings.Cut(has, "/")
	lower := strings.ToLower(hasResource)
	switch {
	case below && !hasBelow && has == resource:
		return "a rule for " + resource + " is not one for the subresource " + sub
	case !below && hasBelow && hasResource == resource:
		return "a rule for the subresource " + hasSub + " is not one for " + resource
	case below && hasBelow && hasResource == resource && hasSub == "*":
		return "a rule has \"*/" + sub + "\" or \"" + wanted + "\", but no asterisk after the slash"
	case below && hasBelow && hasResource == resource &&
		strings.TrimSuffix(hasSub, "s") == strings.TrimSuffix(sub, "s"):
		return "the subresource is called " + sub
	case below == hasBelow && has != wanted && hasSub == sub &&
		(lower == resource || lower+"s" == resource || lower+"es" == resource ||
			strings.TrimSuffix(lower, "y")+"ies" == resource):
		return "resources are named by their plural in lower case"
	}
	return ""
}
