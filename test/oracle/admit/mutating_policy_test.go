package admit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	_ "unsafe" // for linkname

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/utils/ptr"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/policy"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
)

// compileMutating is how Kubernetes' plugin makes its evaluator of a policy.
//
//go:linkname compileMutating k8s.io/apiserver/pkg/admission/plugin/policy/mutating.compilePolicy
func compileMutating(*admissionregistrationv1.MutatingAdmissionPolicy) mutating.PolicyEvaluator

// deduced gives Kubernetes' plugin its converter for kinds without a schema.
type deduced struct{}

func (deduced) Run(context.Context) {}
func (deduced) GetTypeConverter(schema.GroupVersionKind) managedfields.TypeConverter {
	return managedfields.NewDeducedTypeConverter()
}

func randomMutation(r *rand.Rand) admissionregistrationv1.Mutation {
	if r.IntN(2) == 0 {
		return admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
				Expression: pick(r,
					`Object{}`, `Object{spec: Object.spec{replicas: 7}}`,
					`Object{spec: Object.spec{extra: Object.spec.extra{n: variables.n, s: "x"}}}`,
					`Object{metadata: Object.metadata{labels: {"applied": request.operation}}}`,
					`Object{spec: Object.spec{list: [1, 2], map: {"a": 1.5, "b": true}}}`,
					`Object{metadata: Object.metadata{annotations: {"seen": has(object.metadata.annotations) ? "again" : "once"}}}`,
					`has(object.spec.extra) ? Object{spec: Object.spec{more: null}} : Object{spec: Object.spec{extra: Object.spec.extra{}}}`,
					`Object{apiVersion: "example.com/v9"}`, `Object{metadata: Object.metadata{name: "other"}}`,
					`Object{spec: "text"}`,
					`object.nothing ? Object{} : Object{}`, `Object{spec: Object.spec{replicas: 1 / 0}}`,
					`Object{spec: Object.spec{label: namespaceObject.metadata.labels.color}}`,
				)}}
	}
	return admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeJSONPatch,
		JSONPatch: &admissionregistrationv1.JSONPatch{
			Expression: pick(r,
				`[JSONPatch{op: "replace", path: "/spec/replicas", value: object.spec.replicas + 1}]`,
				`[JSONPatch{op: "add", path: "/spec/extra", value: {"n": variables.n}}]`,
				`[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/a~b"), value: "c"}]`,
				`[JSONPatch{op: "test", path: "/spec/replicas", value: 3}, JSONPatch{op: "add", path: "/spec/three", value: true}]`,
				`[JSONPatch{op: "copy", from: "/spec", path: "/copied"}, JSONPatch{op: "remove", path: "/copied/replicas"}]`, `[JSONPatch{op: "move", from: "/spec/extra", path: "/spec/moved"}]`,
				`[JSONPatch{op: "add", path: "/spec/list", value: Object.spec.list{a: 1, b: [1, 2.5, "x", null]}}]`,
				`[JSONPatch{op: "remove", path: "/nothing/here"}]`,
				`has(object.spec.done) ? [] : [JSONPatch{op: "add", path: "/spec/done", value: "yes"}]`,
				`[JSONPatch{op: "wrong", path: "/spec"}]`, `[JSONPatch{op: "add", path: "no-slash", value: 1}]`,
				`[JSONPatch{op: "add", path: "/spec/list/-", value: 1}]`,
				`[JSONPatch{op: "replace", path: "", value: 1}]`,
				`[JSONPatch{op: "add", path: "/spec/n", value: object.nothing}]`,
				`[JSONPatch{op: "replace", path: "/metadata/name", value: "x"}]`,
			)}}
}

func randomMutatingPolicy(r *rand.Rand, name string) *admissionregistrationv1.MutatingAdmissionPolicy {
	p := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.FailurePolicy = randomFailure(r)
	p.Spec.MatchConstraints = randomMatch(r, 1+r.IntN(2))
	p.Spec.MatchConditions = randomConditions(r, true)
	p.Spec.ReinvocationPolicy = pick(r, admissionregistrationv1.NeverReinvocationPolicy,
		admissionregistrationv1.IfNeededReinvocationPolicy)
	p.Spec.Variables = []admissionregistrationv1.Variable{
		{Name: "n", Expression: pick(r, "object.spec.replicas", "object.spec.replicas * 2", "1 / 0")},
	}
	for range 1 + r.IntN(2) {
		p.Spec.Mutations = append(p.Spec.Mutations, randomMutation(r))
	}
	return p
}

// TestMutatingPolicies gives random writes to random policies and compares the object, the refusal and the metrics with
// Kubernetes'.
func TestMutatingPolicies(t *testing.T) {
	rounds, writes := 120, 40
	if testing.Short() {
		rounds = 10
	}
	upstream := mutating.NewDispatcher(authorizerfactory.NewPrivilegedGroups("system:masters"), namespaceMatcher(),
		deduced{})
	denied, changed := 0, 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		objects := map[string]any{}
		var hooks []mutating.PolicyHook
		n := 1 + r.IntN(3)
		for i := range n {
			p := randomMutatingPolicy(r, fmt.Sprintf("p%d", i))
			// Kubernetes loses changes in one version when the next policy uses another (docs/differences.md)
			if n > 1 {
				p.Spec.MatchConstraints.MatchPolicy = ptr.To(admissionregistrationv1.Exact)
			}
			objects["mutatingadmissionpolicies/"+p.Name] = p
			hook := mutating.PolicyHook{Policy: p, Evaluator: compileMutating(p)}
			for j := range 1 + r.IntN(2) {
				b := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("b%d%d", i, j)},
				}
				b.Spec.PolicyName = p.Name
				if r.IntN(2) == 0 {
					b.Spec.MatchResources = randomMatch(r, r.IntN(2))
				}
				objects["mutatingadmissionpolicybindings/"+b.Name] = b
				hook.Bindings = append(hook.Bindings, b)
			}
			hooks = append(hooks, hook)
		}
		counters, metrics := count(t)
		config := policy.Config{
			View: view(t, objects), Catalog: catalog.New(resources()...), Authz: authz.Union{}, Metrics: metrics,
		}
		ours := admit.Chain{Plugins: []admit.Plugin{policy.NewMutating(config, nil)}}
		for range writes {
			w := randomWrite(r)
			got := w.ask(config.Catalog, ours.Mutate)
			want := w.callUpstream(func(ctx context.Context, a admission.Attributes,
				o admission.ObjectInterfaces) error {
				if a.GetOperation() == admission.Delete {
					return nil // its plugin does not handle them
				}
				if err := upstream.Dispatch(ctx, a, o, hooks); err != nil ||
					!a.GetReinvocationContext().ShouldReinvoke() {
					return err
				}
				a.GetReinvocationContext().SetIsReinvoke()
				return upstream.Dispatch(ctx, a, o, hooks)
			})
			if want.Status != nil {
				denied++
				want.Object, got.Object = nil, nil // which no client sees then
			} else if fmt.Sprint(want.Object) != fmt.Sprint(w.object) {
				changed++
			}
			if g, u := got.String(), want.String(); g != u {
				t.Fatalf("seed %d, %+v:\nours %s\nKubernetes' %s", seed, w, g, u)
			}
		}
		counters.compare(t, seed)
	}
	if denied < rounds*writes/20 || changed < rounds*writes/20 {
		t.Errorf("of %d writes %d were denied, %d changed", rounds*writes, denied, changed)
	}
}
