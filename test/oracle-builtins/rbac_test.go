package oraclebuiltins

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	ours "github.com/bowsprit/bowsprit/internal/auth/rbac"
	bootstrapdata "github.com/bowsprit/bowsprit/internal/feature/authorize/bootstrap"
	"github.com/bowsprit/bowsprit/internal/request"
)

// roles is a policy in the form of Kubernetes' authorizer, in ordered lists.
type roles struct {
	roles           []*rbacv1.Role
	bindings        []*rbacv1.RoleBinding
	clusterRoles    []*rbacv1.ClusterRole
	clusterBindings []*rbacv1.ClusterRoleBinding
}

func (r *roles) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	for _, role := range r.roles {
		if role.Namespace == namespace && role.Name == name {
			return role, nil
		}
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("role"), name)
}

func (r *roles) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	for _, role := range r.clusterRoles {
		if role.Name == name {
			return role, nil
		}
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrole"), name)
}

func (r *roles) ListRoleBindings(_ context.Context, namespace string) (list []*rbacv1.RoleBinding, _ error) {
	for _, b := range r.bindings {
		if b.Namespace == namespace {
			list = append(list, b)
		}
	}
	return list, nil
}

func (r *roles) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return r.clusterBindings, nil
}

func (r *roles) theirs() *rbac.RBACAuthorizer { return rbac.New(r, r, r, r) }

// changes returns the policy as changes for our authorizer.
func (r *roles) changes() (all []ours.Change) {
	for _, x := range r.roles {
		all = append(all, ours.Change{Namespace: x.Namespace, Name: x.Name, Rules: x.Rules})
	}
	for _, x := range r.clusterRoles {
		all = append(all, ours.Change{Name: x.Name, Rules: x.Rules})
	}
	for _, x := range r.bindings {
		all = append(all, ours.Change{
			Binding: true, Namespace: x.Namespace, Name: x.Name, RoleRef: x.RoleRef, Subjects: x.Subjects,
		})
	}
	for _, x := range r.clusterBindings {
		all = append(all, ours.Change{Binding: true, Name: x.Name, RoleRef: x.RoleRef, Subjects: x.Subjects})
	}
	return all
}

// only returns the policy with only the binding in a reason.
func (r *roles) only(reason string) *roles {
	one := &roles{roles: r.roles, clusterRoles: r.clusterRoles}
	for _, b := range r.bindings {
		if strings.Contains(reason, fmt.Sprintf(" RoleBinding %q ", b.Name+"/"+b.Namespace)) {
			one.bindings = append(one.bindings, b)
		}
	}
	for _, b := range r.clusterBindings {
		if strings.Contains(reason, fmt.Sprintf(" ClusterRoleBinding %q ", b.Name)) {
			one.clusterBindings = append(one.clusterBindings, b)
		}
	}
	return one
}

// vocabulary makes random policies and questions of few words, so that they meet.
type vocabulary struct{ *rand.Rand }

func (w vocabulary) of(list ...string) string { return list[w.IntN(len(list))] }

func (w vocabulary) some(list ...string) (out []string) {
	for range 1 + w.IntN(3) {
		out = append(out, w.of(list...))
	}
	return out
}

func (w vocabulary) verb() string {
	return w.of("get", "list", "watch", "create", "update", "delete", "impersonate", "bind", "")
}
func (w vocabulary) group() string     { return w.of("", "apps", "batch", "example.com") }
func (w vocabulary) namespace() string { return w.of("a", "b", "kube-system") }
func (w vocabulary) object() string    { return w.of("x", "y", "z", "") }
func (w vocabulary) path() string {
	return w.of("/", "/healthz", "/healthz/etcd", "/version", "/apis", "/apis/apps", "/metrics", "")
}
func (w vocabulary) user() string {
	return w.of("ann", "bob", "system:serviceaccount:a:robot", "system:serviceaccount:b:robot",
		"system:serviceaccount:a:b:robot", "system:serviceaccount:a:", "dev", "")
}
func (w vocabulary) userGroup() string { return w.of("dev", "ops", "system:authenticated", "ann") }

func (w vocabulary) rules() (rules []rbacv1.PolicyRule) {
	for range w.IntN(4) {
		r := rbacv1.PolicyRule{Verbs: w.some("get", "list", "watch", "create", "update", "delete", "impersonate", "*")}
		if w.IntN(4) == 0 {
			r.NonResourceURLs = w.some("/", "/healthz", "/healthz/*", "/apis*", "/version", "*", "/apis/apps**",
				"/met*s")
		} else {
			r.APIGroups = w.some("", "apps", "batch", "*")
			r.Resources = w.some("pods", "pods/log", "*/scale", "deployments", "*/log", "deployments/scale", "*",
				"/log", "pods/", "*/")
		}
		if w.IntN(4) == 0 {
			r.ResourceNames = w.some("x", "y", "")
		}
		rules = append(rules, r)
	}
	return rules
}

func (w vocabulary) subjects(kinds ...string) (list []rbacv1.Subject) {
	for range w.IntN(4) {
		s := rbacv1.Subject{Kind: w.of(kinds...)}
		switch s.Kind {
		case rbacv1.UserKind:
			s.Name = w.user()
		case rbacv1.GroupKind:
			s.Name = w.userGroup()
		default:
			s.Name, s.Namespace = w.of("robot", "b:robot", ""), w.of("a", "b", "")
		}
		list = append(list, s)
	}
	return list
}

func (w vocabulary) ref() rbacv1.RoleRef {
	return rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: w.of("Role", "ClusterRole", "ClusterRole", "Other"),
		Name: "r" + strconv.Itoa(w.IntN(8)),
	}
}

func (w vocabulary) policy() *roles {
	kinds := []string{"User", "Group", "ServiceAccount", "Robot"}
	p := &roles{}
	for i := range 7 { // of 8 names
		p.clusterRoles = append(p.clusterRoles, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "r" + strconv.Itoa(i)}, Rules: w.rules(),
		})
		p.roles = append(p.roles, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.of("a", "b"), Name: fmt.Sprintf("r%d", i)}, Rules: w.rules(),
		})
	}
	for i := range 6 {
		p.clusterBindings = append(p.clusterBindings, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "b" + strconv.Itoa(i)}, RoleRef: w.ref(),
			Subjects: w.subjects(kinds...),
		})
		p.bindings = append(p.bindings, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.of("a", "b"), Name: fmt.Sprintf("b%d", i)}, RoleRef: w.ref(),
			Subjects: w.subjects(kinds...),
		})
	}
	return p
}

func (w vocabulary) randomUser() *user.DefaultInfo {
	u := &user.DefaultInfo{Name: w.user()}
	for range w.IntN(3) {
		u.Groups = append(u.Groups, w.userGroup())
	}
	return u
}

func (w vocabulary) randomRequest() *request.Info {
	if w.IntN(5) == 0 {
		return &request.Info{Verb: w.verb(), Path: w.path()}
	}
	return &request.Info{
		IsResource: true, Verb: w.verb(), Group: w.group(), Version: "v1", Namespace: w.of("", "a", "b"),
		Resource: w.of("pods", "deployments", "pods/log", ""), Subresource: w.of("", "", "log", "scale"),
		Name: w.object(),
	}
}

func attributes(u user.Info, info *request.Info) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: u, Verb: info.Verb, Namespace: info.Namespace, APIGroup: info.Group, APIVersion: info.Version,
		Resource: info.Resource, Subresource: info.Subresource, Name: info.Name, ResourceRequest: info.IsResource,
		Path: info.Path,
	}
}

// TestRBACDecisions compares decisions, their reasons and the lists of rules with Kubernetes' authorizer, over random
// policies that change gradually. RBAC_QUESTIONS=1000000 makes more requests.
func TestRBACDecisions(t *testing.T) {
	t.Parallel()
	questions := 20_000
	if s := os.Getenv("RBAC_QUESTIONS"); s != "" {
		questions, _ = strconv.Atoi(s)
	}
	seed := uint64(1)
	const each = 200
	for done := 0; done < questions && !t.Failed(); done += each {
		seed++
		w := vocabulary{rand.New(rand.NewPCG(seed, 0))}
		evaluator := ours.New(slog.New(slog.DiscardHandler))
		first, policy := w.policy(), w.policy()
		evaluator.Apply(first.changes()...)
		var change []ours.Change
		for _, c := range first.changes() {
			c.Deleted = true
			change = append(change, c)
		}
		if w.IntN(2) == 0 { // all at once, or one by one
			evaluator.Apply(append(change, policy.changes()...)...)
		} else {
			for _, c := range append(change, policy.changes()...) {
				evaluator.Apply(c)
			}
		}
		for range each {
			compareDecisions(t, policy, evaluator, w.randomUser(), w.randomRequest())
		}
		compareRules(t, policy, evaluator, w.randomUser(), w.of("a", "b"))
	}
}

func compareDecisions(t *testing.T, p *roles, e *ours.Evaluator, u user.Info, info *request.Info) {
	t.Helper()
	decision, reason, _ := p.theirs().Authorize(t.Context(), attributes(u, info))
	got, err := e.Authorize(t.Context(), u, info)
	if err != nil || got.Allowed() != (decision == authorizer.DecisionAllow) {
		t.Errorf("%+v %+v: allowed %v, %v (%s); want %v (%s)", u, info, got.Allowed(), err, got.Reason, decision, reason)
		return
	}
	if got.Reason == reason {
		return
	}
	if got.Allowed() { // by another binding: then that one has to allow it by itself, for the same reason
		decision, reason, _ = p.only(got.Reason).theirs().Authorize(t.Context(), attributes(u, info))
		if decision == authorizer.DecisionAllow && got.Reason == reason {
			return
		}
	} else if slices.Equal(sortedErrors(got.Reason), sortedErrors(reason)) {
		return
	}
	t.Errorf("%+v %+v: reason %q, want %q", u, info, got.Reason, reason)
}

// sortedErrors returns the errors of a reason, sorted, since Kubernetes orders them by a map.
func sortedErrors(reason string) []string {
	list := strings.Split(strings.Trim(strings.TrimPrefix(reason, "RBAC: "), "[]"), ", ")
	slices.Sort(list)
	return list
}

func compareRules(t *testing.T, p *roles, e *ours.Evaluator, u user.Info, namespace string) {
	t.Helper()
	resources, others, incomplete, _ := p.theirs().RulesFor(t.Context(), u, namespace)
	got, _ := e.Rules(t.Context(), u, namespace)
	var a, b []string
	for _, r := range resources {
		a = append(a, fmt.Sprint(r.GetVerbs(), r.GetAPIGroups(), r.GetResources(), r.GetResourceNames()))
	}
	for _, r := range others {
		a = append(a, fmt.Sprint(r.GetVerbs(), r.GetNonResourceURLs()))
	}
	for _, r := range got.Resources {
		b = append(b, fmt.Sprint(r.Verbs, r.APIGroups, r.Resources, r.ResourceNames))
	}
	for _, r := range got.NonResources {
		b = append(b, fmt.Sprint(r.Verbs, r.NonResourceURLs))
	}
	slices.Sort(a)
	slices.Sort(b)
	if !reflect.DeepEqual(a, b) || incomplete != got.Incomplete {
		t.Errorf("%+v in %s:\n got %q\nwant %q", u, namespace, b, a)
	}
}

// bootstrap is the policy that Kubernetes makes at its first start.
func bootstrap() *roles {
	p := &roles{}
	for _, r := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		p.clusterRoles = append(p.clusterRoles, &r)
	}
	for _, b := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		p.clusterBindings = append(p.clusterBindings, &b)
	}
	for _, list := range bootstrappolicy.NamespaceRoles() {
		for _, r := range list {
			p.roles = append(p.roles, &r)
		}
	}
	for _, list := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range list {
			p.bindings = append(p.bindings, &b)
		}
	}
	return p
}

// TestRBACBootstrapPolicy compares the server's initial roles and bindings with Kubernetes'; -update takes them over.
func TestRBACBootstrapPolicy(t *testing.T) {
	if *update {
		updatePolicy(t)
		return
	}
	comparePolicy(t, defaultRoleGates()...)
}

// TestRBACGatedPolicy does the same with each feature that adds to them. It is not parallel, because Kubernetes has one
// set of gates for all.
func TestRBACGatedPolicy(t *testing.T) {
	for _, gates := range append(roleGates, nil,
		[]featuregate.Feature{features.ClusterTrustBundle, features.PodCertificateRequest}) {
		t.Run(fmt.Sprint(gates), func(t *testing.T) {
			setRoleGates(t, gates...)
			var names []string
			for _, gate := range gates {
				names = append(names, string(gate))
			}
			comparePolicy(t, names...)
		})
	}
}

// comparePolicy compares the policy with the additions of features. It ignores the order of a role's rules.
func comparePolicy(t *testing.T, gates ...string) {
	t.Helper()
	objects, err := bootstrapdata.Objects(gates...)
	if err != nil {
		t.Fatal(err)
	}
	inOrder := func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return slices.SortedStableFunc(slices.Values(rules),
			func(a, b rbacv1.PolicyRule) int { return strings.Compare(a.String(), b.String()) })
	}
	p, got, want := bootstrap(), map[string]string{}, map[string]string{}
	text := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	put := func(kind string, meta metav1.ObjectMeta, content ...any) {
		want[kind+" "+meta.Namespace+"/"+meta.Name] = text([]any{meta.Labels, meta.Annotations, content})
	}
	for _, r := range p.clusterRoles {
		put("ClusterRole", r.ObjectMeta, inOrder(r.Rules), r.AggregationRule)
	}
	for _, r := range p.roles {
		put("Role", r.ObjectMeta, inOrder(r.Rules), nil)
	}
	for _, b := range p.clusterBindings {
		put("ClusterRoleBinding", b.ObjectMeta, b.RoleRef, b.Subjects)
	}
	for _, b := range p.bindings {
		put("RoleBinding", b.ObjectMeta, b.RoleRef, b.Subjects)
	}
	for _, o := range objects {
		content := []any{inOrder(o.Rules), o.AggregationRule}
		if strings.HasSuffix(o.Kind, "Binding") {
			content = []any{o.RoleRef, o.Subjects}
		}
		got[o.Kind+" "+o.Namespace+"/"+o.Name] = text([]any{o.Labels, o.Annotations, content})
	}
	for key, w := range want {
		if got[key] != w {
			t.Errorf("%s:\n got %s\nwant %s", key, got[key], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
}

// TestRBACBootstrapDecisions compares decisions about the bootstrap roles, for everything that one of their rules
// names, and similar requests.
func TestRBACBootstrapDecisions(t *testing.T) {
	t.Parallel()
	p := bootstrap()
	evaluator := ours.New(slog.New(slog.DiscardHandler))
	evaluator.Apply(p.changes()...)
	questions := 5_000
	if s := os.Getenv("RBAC_QUESTIONS"); s != "" {
		questions, _ = strconv.Atoi(s)
	}
	var rules []rbacv1.PolicyRule
	for _, r := range p.clusterRoles {
		rules = append(rules, r.Rules...)
	}
	var people []*user.DefaultInfo
	for _, b := range p.clusterBindings {
		for _, s := range b.Subjects {
			switch s.Kind {
			case rbacv1.UserKind:
				people = append(people, &user.DefaultInfo{Name: s.Name})
			case rbacv1.GroupKind:
				people = append(people, &user.DefaultInfo{Name: "bob", Groups: []string{s.Name}})
			default:
				people = append(people, &user.DefaultInfo{Name: "system:serviceaccount:" + s.Namespace + ":" + s.Name,
					Groups: []string{"system:serviceaccounts", "system:authenticated"}})
			}
		}
	}
	w := vocabulary{rand.New(rand.NewPCG(1, 2))}
	for range questions {
		r, verbs := rules[w.IntN(len(rules))], rules[w.IntN(len(rules))].Verbs
		if w.IntN(2) == 0 {
			verbs = r.Verbs
		}
		info := &request.Info{Verb: w.of(verbs...)}
		if len(r.Resources) > 0 {
			info.IsResource, info.Group, info.Version = true, w.of(r.APIGroups...), "v1"
			info.Resource, info.Subresource, _ = strings.Cut(w.of(r.Resources...), "/")
			info.Namespace, info.Name = w.of("", w.namespace()), w.of(append(r.ResourceNames, "")...)
		} else {
			info.Path = strings.ReplaceAll(w.of(r.NonResourceURLs...), "*", w.of("", "x"))
		}
		compareDecisions(t, p, evaluator, people[w.IntN(len(people))], info)
	}
}

// BenchmarkRBAC compares both with 10,000 cluster-wide bindings. Two of them concern the user.
func BenchmarkRBAC(b *testing.B) {
	p := &roles{clusterRoles: []*rbacv1.ClusterRole{{
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"},
		}},
	}}}
	for i := range 10_000 {
		p.clusterBindings = append(p.clusterBindings, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", i)},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"},
			Subjects:   []rbacv1.Subject{{Kind: "User", Name: fmt.Sprint("u", i/2)}},
		})
	}
	evaluator := ours.New(slog.New(slog.DiscardHandler))
	evaluator.Apply(p.changes()...)
	u := &user.DefaultInfo{Name: "u2500", Groups: []string{"system:authenticated"}}
	info := &request.Info{IsResource: true, Verb: "get", Group: "apps", Version: "v1", Resource: "deployments"}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = evaluator.Authorize(b.Context(), u, info)
		}
	})
	b.Run("kube", func(b *testing.B) {
		theirs, attrs := p.theirs(), attributes(u, info)
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = theirs.Authorize(b.Context(), attrs)
		}
	})
}
