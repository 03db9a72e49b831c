package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Allows reports whether a rule allows a request, within the rule's scope.
func Allows(r *rbacv1.PolicyRule, info *request.Info) bool {
	if !has(r.Verbs, info.Verb) {
		return false
	}
	if !info.IsResource {
		return slices.ContainsFunc(r.NonResourceURLs, func(url string) bool { return urlMatches(url, info.Path) })
	}
	return has(r.APIGroups, info.Group) && resourceMatches(r.Resources, info.Resource, info.Subresource) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, info.Name))
}

// has reports whether words contains the wanted one, or an asterisk.
func has(words []string, wanted string) bool {
	for _, word := range words {
		if word == "*" || word == wanted {
			return true
		}
	}
	return false
}

// resourceMatches reports whether one of a rule's resources covers a resource, or a subresource if sub is not "":
// "pods", "pods/log", "*/scale", "*".
func resourceMatches(resources []string, resource, sub string) bool {
	for _, r := range resources {
		switch {
		case r == "*":
			return true
		case sub == "":
			if r == resource {
				return true
			}
		case strings.HasSuffix(r, sub) && len(r) > len(sub) && r[len(r)-len(sub)-1] == '/':
			if head := r[:len(r)-len(sub)-1]; head == resource || head == "*" {
				return true
			}
		}
	}
	return false
}

func urlMatches(url, path string) bool {
	return url == "*" || url == path ||
		strings.HasSuffix(url, "*") && strings.HasPrefix(path, strings.TrimRight(url, "*"))
}
