package why

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/request"
)

var (
	verbs      = []string{"get", "list", "delete", "*", "GET"}
	apiGroups  = []string{"", "apps", "*", "apps/v1"}
	resources  = []string{"pods", "pods/log", "*/log", "*", "deployments", "pod", "pods/*", "pods/logs"}
	names      = []string{"a", "b"}
	namespaces = []string{"dev", "prod", ""}
	paths      = []string{"/metrics", "/metrics/", "/healthz/*", "*", "/healthz/etcd"}
)

func pick(rng *rand.Rand, from []string) string { return from[rng.IntN(len(from))] }

func some(rng *rand.Rand, from []string, most int) (out []string) {
	for range rng.IntN(most + 1) {
		out = append(out, pick(rng, from))
	}
	return out
}

func randomPolicy(rng *rand.Rand) *Policy {
	p := &Policy{}
	for _, name := range []string{"one", "two", "three", "four", "system:five"} {
		r := Role{Namespace: pick(rng, namespaces), Name: name}
		for range rng.IntN(4) {
			rule := rbacv1.PolicyRule{Verbs: some(rng, verbs, 3)}
			if rng.IntN(5) == 0 {
				rule.NonResourceURLs = some(rng, paths, 2)
			} else {
				rule.APIGroups, rule.Resources = some(rng, apiGroups, 2), some(rng, resources, 3)
				rule.ResourceNames = some(rng, names, rng.IntN(2))
			}
			r.Rules = append(r.Rules, rule)
		}
		p.Roles = append(p.Roles, r)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		role := p.Roles[rng.IntN(len(p.Roles))]
		kind, in := "Role", role.Namespace
		if role.Namespace == "" {
			kind, in = "ClusterRole", pick(rng, namespaces)
		}
		p.Bindings = append(p.Bindings, bind(in, name, kind, role.Name,
			pick(rng, []string{"User:alice", "Group:dev", "User:bob"})))
	}
	return p
}

func randomRequest(rng *rand.Rand) *request.Info {
	if rng.IntN(6) == 0 {
		return &request.Info{Verb: pick(rng, verbs[:3]), Path: pick(rng, []string{"/metrics", "/healthz/etcd", "/x"})}
	}
	return about(pick(rng, verbs[:3]), pick(rng, apiGroups[:2]), pick(rng, []string{"pods", "pods/log", "deployments"}),
		pick(rng, namespaces), pick(rng, []string{"a", "b", ""}))
}

// allowed asks the real authorizer.
func allowed(p *Policy, u user.Info, info *request.Info) bool {
	e := rbac.New(slog.New(slog.DiscardHandler))
	var all []rbac.Change
	for _, r := range p.Roles {
		all = append(all, rbac.Change{Namespace: r.Namespace, Name: r.Name, Rules: r.Rules})
	}
	for _, b := range p.Bindings {
		all = append(all, rbac.Change{
			Binding: true, Namespace: b.Namespace, Name: b.Name, RoleRef: b.RoleRef, Subjects: b.Subjects,
		})
	}
	e.Apply(all...)
	d, _ := e.Authorize(context.Background(), u, info)
	return d.Allowed()
}

// with is the policy and a binding that was proposed.
func (p *Policy) with(b Proposal, ref rbacv1.RoleRef, more ...Role) *Policy {
	return &Policy{Roles: append(more, p.Roles...), Bindings: append([]Binding{{
		Namespace: b.Namespace, Name: "proposed", RoleRef: ref, Subjects: []rbacv1.Subject{b.Subject},
	}}, p.Bindings...)}
}

// mended returns a policy of only the near rule, with all missing parts added except the one at index without; -1 means
// no exception.
func mended(n *Near, info *request.Info, without int) *Policy {
	r, namespace := n.Rule, n.Binding.Namespace
	for i, m := range n.Missing {
		if i == without {
			continue
		}
		switch m.Part {
		case PartVerb:
			r.Verbs = append([]string{m.Wanted}, r.Verbs...)
		case PartGroup:
			r.APIGroups = append([]string{m.Wanted}, r.APIGroups...)
		case PartResource:
			r.Resources = append([]string{m.Wanted}, r.Resources...)
		case PartName:
			if m.Wanted == "" {
				r.ResourceNames = nil
			} else {
				r.ResourceNames = append([]string{m.Wanted}, r.ResourceNames...)
			}
		case PartURL:
			r.NonResourceURLs = append([]string{m.Wanted}, r.NonResourceURLs...)
		case PartNamespace:
			namespace = m.Wanted
		}
	}
	return &Policy{Roles: []Role{{Name: "r", Rules: []rbacv1.PolicyRule{r}}}, Bindings: []Binding{{
		Namespace: namespace, Name: "b", RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"},
		Subjects: []rbacv1.Subject{n.Subject},
	}}}
}

// TestRandom checks explanations against the authorizer: no rule without missing parts is refused, the missing parts
// are complete and necessary, proposed roles and rules allow the request, and no proposed role has strictly more
// permissions than a later one.
func TestRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	refused, near, granted := 0, 0, 0
	for range 4000 {
		p, info := randomPolicy(rng), randomRequest(rng)
		if allowed(p, alice, info) {
			continue
		}
		refused++
		e := Explain(p, alice, info)
		for i := range e.Nearest {
			n := &e.Nearest[i]
			near++
			if len(n.Missing) == 0 || !allowed(mended(n, info, -1), alice, info) {
				t.Fatalf("%s: %+v lacks more than is said", Describe(info), n)
			}
			for j := range n.Missing {
				if allowed(mended(n, info, j), alice, info) {
					t.Fatalf("%s: %+v does not need %s", Describe(info), n, n.Missing[j])
				}
			}
		}
		for i, g := range e.GrantedBy {
			granted++
			if !allowed(p.with(g.Binding, *g.Binding.RoleRef), alice, info) {
				t.Fatalf("%s: %+v does not allow it", Describe(info), g)
			}
			for _, later := range e.GrantedBy[i+1:] {
				if exceeds(p.find(g.Role), p.find(later.Role)) {
					t.Fatalf("%s: %s has all that %s has, and more", Describe(info), g.Role, later.Role)
				}
			}
		}
		smallest := Role{Name: "smallest", Rules: []rbacv1.PolicyRule{e.Smallest}}
		ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: "smallest"}
		if !allowed(p.with(e.Binding, ref, smallest), alice, info) {
			t.Fatalf("%s: the smallest rule %+v does not allow it", Describe(info), e.Smallest)
		}
		if allowed(p, alice, info) {
			t.Fatalf("%s: explaining has changed the policy", Describe(info))
		}
	}
	if refused < 1000 || near < 300 || granted < 200 {
		t.Errorf("%d refused, %d near rules, %d roles that allow: too few of one", refused, near, granted)
	}
}

func (p *Policy) find(at Reference) []rbacv1.PolicyRule {
	for i := range p.Roles {
		if p.Roles[i].reference() == at {
			return p.Roles[i].Rules
		}
	}
	return nil
}
