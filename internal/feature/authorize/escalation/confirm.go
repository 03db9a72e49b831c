package escalation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/internal/auth/rbac"
)

// confirm returns nil if the user has every permission of the rules where the request is.
func (c *Checker) confirm(ctx context.Context, r Request, rules []rbacv1.PolicyRule) error {
	held, missing := c.Roles.Held(r.User, r.Namespace)
	more, err := lacking(ctx, held, rules)
	if err != nil || len(more) == 0 {
		return err
	}
	return refusal(r, more, missing)
}

func refusal(r Request, lacking []rbacv1.PolicyRule, missing []rbacv1.RoleRef) error {
	var lines []string
	for _, rule := range compact(lacking) {
		lines = append(lines, describe(rule))
	}
	slices.Sort(lines)
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		r.User.GetName(), r.User.GetGroups(), strings.Join(slices.Compact(lines), "\n"))
	if errs := resolutionErrors(missing, r.Resource); errs != "" {
		text += "; resolution errors: [" + errs + "]"
	}
	return fmt.Errorf("%s", text)
}

// resolutionErrors returns the errors about missing roles that bindings of the user name. As in Kubernetes' storage,
// which knows only the request, they call each role by the resource of the request.
func resolutionErrors(missing []rbacv1.RoleRef, resource string) string {
	var texts []string
	for _, ref := range missing {
		text := rbac.NotFound(ref, resource).Error()
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) > 1 {
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return strings.Join(texts, "")
}

// compact merges rules about the same resource, each with one verb.
func compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type resource struct {
		group, resource, name string
		named                 bool
	}
	var out []rbacv1.PolicyRule
	at := map[resource]int{}
	for _, r := range rules {
		if len(r.NonResourceURLs) > 0 || len(r.ResourceNames) > 1 || len(r.APIGroups) != 1 || len(r.Resources) != 1 {
			out = append(out, r)
			continue
		}
		key := resource{group: r.APIGroups[0], resource: r.Resources[0]}
		if len(r.ResourceNames) == 1 {
			key.name, key.named = r.ResourceNames[0], true
		}
		if i, ok := at[key]; ok {
			out[i].Verbs = append(out[i].Verbs, r.Verbs...)
			continue
		}
		at[key] = len(out)
		r.Verbs = slices.Clone(r.Verbs)
		out = append(out, r)
	}
	return out
}

// describe formats a rule without its empty fields.
func describe(r rbacv1.PolicyRule) string {
	var parts []string
	for _, field := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs},
		{"ResourceNames", r.ResourceNames}, {"Verbs", r.Verbs},
	} {
		if len(field.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", field.name, field.values))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
