package policy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/expr"
	"github.com/bowsprit/bowsprit/internal/admit/manifest"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/admit/source"
)

// Mutating enforces MutatingAdmissionPolicies.
type Mutating struct {
	config   Config
	files    *manifest.Source[manifest.MutatingPolicy]
	policies policies[manifest.MutatingPolicy, *mutating]
}

var _ admit.Mutator = (*Mutating)(nil)

// NewMutating returns the plugin. files are the policies in files; nil means none.
func NewMutating(c Config, files *manifest.Source[manifest.MutatingPolicy]) *Mutating {
	return &Mutating{config: c, files: files, policies: policies[manifest.MutatingPolicy, *mutating]{
		mutating: true,
		stored:   source.New(c.collection("mutatingadmissionpolicies"), newMutating),
		bindings: source.New(c.collection("mutatingadmissionpolicybindings"), newMutatingBinding),
		compile: func(m manifest.MutatingPolicy) bound[*mutating] {
			b := bound[*mutating]{policy: mutatingOf(m.Policy)}
			for _, one := range m.Bindings {
				b.bindings = append(b.bindings, mutatingBindingOf(one))
			}
			return b
		},
	}}
}

// Name returns kube's name for the plugin.
func (*Mutating) Name() string { return "MutatingAdmissionPolicy" }

// Mutate runs the mutations of every matching policy, one after another. The policies are selected before the first
// runs. A deletion has nothing to change.
func (p *Mutating) Mutate(ctx context.Context, a *admit.Attributes) error {
	policies := p.policies.concerned(&p.config, p.files.List(), a)
	if len(policies) == 0 || a.Operation == admit.Delete {
		return nil
	}
	w := work{config: &p.config, a: a}
	for _, b := range policies {
		w.plan(ctx, b.policy, b.bindings)
	}
	if len(w.invocations) > 0 {
		if err := w.run(ctx, a.Reinvocation(p.Name())); err != nil {
			return err
		}
	}
	return w.refusal()
}

// invocation is a pending run of a policy with a binding and a parameter.
type invocation struct {
	policy  *mutating
	binding *binding
	target  match.Target
	param   map[string]any
}

// id identifies an invocation within one write.
func (i *invocation) id() string {
	meta, _ := i.param["metadata"].(map[string]any)
	return fmt.Sprintf("%s %s %v/%v", i.policy.name, i.binding.name, meta["namespace"], meta["name"])
}

// work holds the invocations of policies for one write.
type work struct {
	config      *Config
	a           *admit.Attributes
	invocations []invocation
	faults      []fault
}

// fault is an error that refuses the write: its policy does not ignore failures.
type fault struct {
	text   string
	reason metav1.StatusReason // "" for Forbidden
}

func (w *work) fault(p *mutating, b *binding, err error, reason metav1.StatusReason) {
	if p.ignoresFailures() {
		return
	}
	text := fmt.Sprintf("policy %q denied request: %s", p.name, err)
	if b != nil {
		text = fmt.Sprintf("policy '%s' with binding '%s' denied request: %s", p.name, b.name, err)
	}
	w.faults = append(w.faults, fault{text, reason})
}

// plan determines the bindings and parameters of a policy.
func (w *work) plan(ctx context.Context, p *mutating, bindings []*binding) {
	t, ok, err := p.match.target(ctx, w.a, w.config)
	if err != nil {
		w.fault(p, nil, fmt.Errorf("failed to configure policy: %w", err), "")
	}
	if err != nil || !ok {
		return
	}
	kind, err := w.config.paramKind(p.spec.ParamKind)
	if err != nil {
		w.fault(p, nil, fmt.Errorf("failed to configure policy: %w", err), "")
		return
	}
	for _, b := range bindings {
		_, ok, err := b.match.target(ctx, w.a, w.config)
		if err == nil && !ok {
			continue
		}
		var params []map[string]any
		if err == nil {
			params, err = w.config.params(ctx, kind, b.params, w.a.Namespace)
		}
		if err != nil {
			w.fault(p, b, fmt.Errorf("failed to configure binding: %w", err), "")
			continue
		}
		for _, param := range params {
			w.invocations = append(w.invocations, invocation{p, b, t, param})
		}
	}
}

// run executes the planned invocations that are due in this round.
func (w *work) run(ctx context.Context, r *admit.Reinvocation) error {
	r.Begin(w.a.Object)
	defer func() { r.End(w.a.Object) }()
	patched := false
	for i := range w.invocations {
		done, err := w.invoke(ctx, &w.invocations[i], r)
		if err != nil {
			return err
		}
		patched = patched || done
	}
	if patched {
		// As in Kubernetes, a policy that requests reinvocation is evaluated again after any patch, including its own.
		r.Changed()
	}
	return nil
}

// invoke runs the mutations of one policy. patched reports whether there was at least one patch.
func (w *work) invoke(ctx context.Context, i *invocation, r *admit.Reinvocation) (patched bool, err error) {
	program := i.policy.program()
	s := w.config.see(w.a)
	f := s.in(ctx, i.target.Version)
	if f.err != nil {
		return false, apierrors.NewInternalError(f.err)
	}
	input := s.input(f, i.target, i.param)
	input.Request = func() map[string]any { return expr.Request(w.a, match.AsRequested(w.a).Resource, i.target.Kind) }
	holds := true
	if len(program.conditions) > 0 {
		holds, err = w.config.hold(ctx, i.policy.name, w.a, program.conditions, input)
	}
	if err != nil && !i.policy.ignoresFailures() {
		w.fault(i.policy, i.binding, err, metav1.StatusReasonInvalid)
	}
	if err != nil || !holds || r.Skip(i.id()) {
		return false, nil
	}
	var namespace map[string]any
	if program.namespace {
		if namespace, err = s.namespaceObject(ctx); err != nil {
			return false, err
		}
	}
	before := w.a.Object
	for _, m := range program.mutations {
		if w.a.Object == nil {
			continue
		}
		began := time.Now()
		done, err := w.mutate(ctx, i, m, namespace)
		w.config.Metrics.PolicyMutated(i.policy.name, i.binding.name, err, time.Since(began))
		var status *apierrors.StatusError
		if errors.As(err, &status) {
			return patched, status
		}
		if err != nil {
			w.fault(i.policy, i.binding, err, metav1.StatusReasonInvalid)
		}
		patched = patched || done
	}
	if !reflect.DeepEqual(before, w.a.Object) {
		r.Changed()
	}
	if i.policy.spec.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
		r.Ran(i.id())
	}
	return patched, nil
}

// mutate evaluates one mutation and applies its result to the object.
func (w *work) mutate(ctx context.Context, i *invocation, m mutation, namespace map[string]any) (bool, error) {
	if m.expression.Err != nil {
		return false, m.expression.Err
	}
	s := w.config.see(w.a)
	f := s.in(ctx, i.target.Version)
	if f.err != nil {
		return false, apierrors.NewInternalError(f.err)
	}
	in := s.input(f, i.target, i.param)
	in.Namespace = namespace
	results, _, err := expr.Run(ctx, []*expr.Expression{m.expression}, in, expr.Budget)
	if err != nil {
		return false, err
	}
	if results[0].Err != nil {
		return false, results[0].Err
	}
	next, err := m.patch(ctx, i.target, f.object, results[0])
	if err != nil {
		return false, err
	}
	if err := w.a.Normalize(i.target.Version, next); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if next, err = w.a.Back(ctx, i.target.Version, next); err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("failed to convert object: %w", err))
	}
	w.a.Replace(next)
	return true, nil
}

// refusal returns the error for the client, nil if there was no fault.
func (w *work) refusal() error {
	if len(w.faults) == 0 {
		return nil
	}
	err := admit.Forbidden(w.a, errors.New("admission request denied by policy"))
	err.ErrStatus.Message = w.faults[0].text
	if reason := w.faults[0].reason; reason != "" {
		err.ErrStatus.Reason = reason // as in Kubernetes, the code stays 403
	}
	for _, f := range w.faults {
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Message: f.text})
	}
	return err
}
