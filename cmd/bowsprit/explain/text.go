package explain

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/internal/feature/review/why"
	"github.com/bowsprit/bowsprit/internal/request"
)

// text returns an answer for people.
func (a *answer) text(w *deniedRequest) string {
	var b strings.Builder
	name := w.user
	if name == "" {
		name = "you"
	}
	if a.Unknown != "" {
		fmt.Fprintf(&b, "The server has no resource %q, so every request for it gets 404: \"bowsprit kubectl api-resources\" "+
			"lists all.\n", a.Unknown)
	}
	if a.Error != "" {
		fmt.Fprintf(&b, "The server could not evaluate every rule: %s\n", a.Error)
	}
	switch e := a.Explanation; {
	case a.Allowed:
		fmt.Fprintf(&b, "This is allowed: %s may %s.\n", name, why.Describe(w.info()))
		if a.Reason != "" {
			fmt.Fprintf(&b, "%s\n", a.Reason)
		}
	case e == nil:
		fmt.Fprintf(&b, "%s may not %s, and the server gives no explanation: it is not Bowsprit, or an older version.\n", name,
			why.Describe(w.info()))
	default:
		fmt.Fprintf(&b, "%s.\n", e.Summary)
		if a.Reason != "" {
			fmt.Fprintf(&b, "The server's reason: %s\n", a.Reason)
		}
		if !a.Denied {
			writeExplanation(&b, e, w)
		}
	}
	return b.String()
}

// info returns the request as request.Info.
func (w *deniedRequest) info() *request.Info {
	if w.resource == nil {
		return &request.Info{Verb: w.other.Verb, Path: w.other.Path}
	}
	r := w.resource
	return &request.Info{
		IsResource: true, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name,
	}
}

func writeExplanation(b *strings.Builder, e *why.Explanation, w *deniedRequest) {
	if len(e.Nearest) > 0 {
		b.WriteString("\nThe closest rules:\n")
	}
	for _, n := range e.Nearest {
		fmt.Fprintf(b, "  %s\n    from %s, granted to %s %s\n", ruleText(n.Rule), n.Role,
			n.Subject.Kind, n.Subject.Name)
		fmt.Fprintf(b, "    by %s\n", n.Binding)
		for _, m := range n.Missing {
			fmt.Fprintf(b, "    lacks %s%s\n", m, withColon(m.Note))
		}
	}
	for _, d := range e.Dangling {
		fmt.Fprintf(b, "\n%s refers to a role that does not exist.\n", d)
	}
	if len(e.GrantedBy) > 0 {
		b.WriteString("\nRoles that grant it, the least powerful first, and the missing binding:\n")
	}
	for _, g := range e.GrantedBy {
		fmt.Fprintf(b, "  %s\n    %s\n", g.Role, bindCommand(g.Binding, bindingName(g.Role.Name, w)))
	}
	if complete(&e.Smallest) {
		b.WriteString("\nThe smallest role that grants it, and its binding:\n")
		for _, line := range smallestCommands(e, w) {
			fmt.Fprintf(b, "    %s\n", line)
		}
	}
	if len(e.Hidden) > 0 {
		fmt.Fprintf(b, "\nNot checked, because you may not list them: %s.\n", strings.Join(e.Hidden, ", "))
	}
	if w.user != "" && len(w.groups) == 0 && !strings.HasPrefix(w.user, "system:") {
		fmt.Fprintf(b, "\nOnly bindings that name user %s count here: add the user's groups with --as-group.\n",
			w.user)
	}
}

func withColon(note string) string {
	if note == "" {
		return ""
	}
	return ": " + note
}

// ruleText returns a rule in the form: get,list pods,services.
func ruleText(r rbacv1.PolicyRule) string {
	verbs := strings.Join(r.Verbs, ",")
	if len(r.NonResourceURLs) > 0 {
		return verbs + " " + strings.Join(r.NonResourceURLs, ",")
	}
	text := verbs + " " + strings.Join(r.Resources, ",")
	if groups := slices.DeleteFunc(slices.Clone(r.APIGroups), func(g string) bool { return g == "" }); len(groups) > 0 {
		text += " of " + strings.Join(groups, ",")
	}
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(r.ResourceNames, ",")
	}
	return text
}

// bindingName makes a name for a binding, of the role and the user.
func bindingName(role string, w *deniedRequest) string {
	user := w.user
	if user == "" {
		user = "me"
	}
	return dashed(user[strings.LastIndex(user, ":")+1:]) + "-" + dashed(role)
}

// dashed makes a text a part of a name.
func dashed(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "-")
}

func bindCommand(p why.Proposal, name string) string {
	words := []string{"kubectl", "create", strings.ToLower(p.Kind), name}
	if p.RoleRef != nil {
		words = append(words, "--"+strings.ToLower(p.RoleRef.Kind)+"="+shell(p.RoleRef.Name))
	}
	if p.Subject.Kind == rbacv1.ServiceAccountKind {
		words = append(words, "--serviceaccount="+shell(p.Subject.Namespace+":"+p.Subject.Name))
	} else {
		words = append(words, "--user="+shell(p.Subject.Name))
	}
	if p.Namespace != "" {
		words = append(words, "--namespace="+shell(p.Namespace))
	}
	return strings.Join(words, " ")
}

// complete reports whether a rule, which comes from the server, names a verb, and a path or a resource.
func complete(r *rbacv1.PolicyRule) bool {
	return len(r.Verbs) > 0 && (len(r.NonResourceURLs) > 0 || len(r.Resources) > 0 && len(r.APIGroups) > 0)
}

func smallestCommands(e *why.Explanation, w *deniedRequest) []string {
	r, p := e.Smallest, e.Binding
	kind, in := "ClusterRole", ""
	if p.Namespace != "" {
		kind, in = "Role", " --namespace="+shell(p.Namespace)
	}
	info := w.info()
	name := dashed(info.Verb + "-" + info.Resource + "-" + info.Subresource + info.Path)
	make := fmt.Sprintf("kubectl create %s %s --verb=%s", strings.ToLower(kind), name, shell(r.Verbs[0]))
	if len(r.NonResourceURLs) > 0 {
		make += " --non-resource-url=" + shell(r.NonResourceURLs[0])
	} else {
		resource, sub, below := strings.Cut(r.Resources[0], "/")
		if r.APIGroups[0] != "" {
			resource += "." + r.APIGroups[0]
		}
		if below {
			resource += "/" + sub
		}
		make += " --resource=" + shell(resource)
		if len(r.ResourceNames) > 0 {
			make += " --resource-name=" + shell(r.ResourceNames[0])
		}
	}
	p.RoleRef = &rbacv1.RoleRef{Kind: kind, Name: name}
	return []string{make + in, bindCommand(p, bindingName(name, w))}
}

// shell quotes a text for a shell if it must be.
func shell(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:@,=+%", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
