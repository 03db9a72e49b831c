package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/manifest"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/admit/source"
)

// Validating enforces ValidatingAdmissionPolicies.
type Validating struct {
	config   Config
	files    *manifest.Source[manifest.ValidatingPolicy]
	policies policies[manifest.ValidatingPolicy, *validating]
}

var _ admit.Validator = (*Validating)(nil)

// NewValidating returns the plugin. files are the policies in files; nil means none.
func NewValidating(c Config, files *manifest.Source[manifest.ValidatingPolicy]) *Validating {
	return &Validating{config: c, files: files, policies: policies[manifest.ValidatingPolicy, *validating]{
		stored:   source.New(c.collection("validatingadmissionpolicies"), newValidating),
		bindings: source.New(c.collection("validatingadmissionpolicybindings"), newValidatingBinding),
		compile: func(m manifest.ValidatingPolicy) bound[*validating] {
			b := bound[*validating]{policy: validatingOf(m.Policy)}
			for _, one := range m.Bindings {
				b.bindings = append(b.bindings, validatingBindingOf(one))
			}
			return b
		},
	}}
}

// Name returns kube's name for the plugin.
func (*Validating) Name() string { return "ValidatingAdmissionPolicy" }

// Validate evaluates every matching policy, and refuses with the first denial.
func (p *Validating) Validate(ctx context.Context, a *admit.Attributes) error {
	v := verdict{config: &p.config, a: a}
	for _, b := range p.policies.concerned(&p.config, p.files.List(), a) {
		if err := v.ask(ctx, b.policy, b.bindings); err != nil {
			return err
		}
	}
	v.annotate()
	return v.refusal()
}

// verdict is the combined result of the policies for one write so far.
type verdict struct {
	config *Config
	a      *admit.Attributes
	seen   *seen // nil until a policy matches
	denial *denial
	// failures are for the audit log.
	failures []failure
}

// failure is a failed validation in the audit log.
type failure struct {
	Message           string                                     `json:"message"`
	Policy            string                                     `json:"policy"`
	Binding           string                                     `json:"binding"`
	ExpressionIndex   int                                        `json:"expressionIndex"`
	ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
}

// mostFailures is the number of failures in the audit annotation of a request, as in Kubernetes.
const mostFailures = 50

// denial is the first reason to refuse.
type denial struct {
	policy, binding string // binding is "" if the fault is the policy's
	decision
}

// ask evaluates one policy with each of its bindings. An error ends the request.
func (v *verdict) ask(ctx context.Context, p *validating, bindings []*binding) error {
	t, ok, err := p.match.target(ctx, v.a, v.config)
	if err != nil {
		v.fault(p, "", fmt.Errorf("failed to configure policy: %w", err))
	}
	if err != nil || !ok {
		return nil
	}
	if v.seen == nil {
		v.seen = v.config.see(v.a)
	}
	kind, err := v.config.paramKind(p.spec.ParamKind)
	if err != nil {
		v.fault(p, "", fmt.Errorf("failed to configure policy: %w", err))
		return nil
	}
	var notes annotations
	for _, b := range bindings {
		if err := v.evaluateBound(ctx, p, b, t, kind, &notes); err != nil {
			return err
		}
	}
	notes.publish(v.a, p.name)
	return nil
}

func (v *verdict) evaluateBound(
	ctx context.Context, p *validating, b *binding, t match.Target, kind *paramKind, notes *annotations,
) error {
	fault := func(err error) error {
		v.fault(p, b.name, fmt.Errorf("failed to configure binding: %w", err))
		return nil
	}
	if _, ok, err := b.match.target(ctx, v.a, v.config); err != nil {
		return fault(err)
	} else if !ok {
		return nil
	}
	params, err := v.config.params(ctx, kind, b.params, v.a.Namespace)
	if err != nil {
		return fault(err)
	}
	if len(params) == 0 {
		return nil
	}
	f := v.seen.in(ctx, t.Version)
	if f.err != nil {
		return fault(fmt.Errorf("failed to convert object version: %w", f.err))
	}
	var namespace map[string]any
	if p.program().namespace {
		if namespace, err = v.seen.namespaceObject(ctx); err != nil {
			return err
		}
	}
	if len(params) == 1 {
		v.add(p, b, p.evaluate(ctx, v.seen, f, t, params[0], namespace), notes)
		return nil
	}
	// As in Kubernetes, all parameters are evaluated before any result counts.
	answers := make([]answer, 0, len(params))
	for _, param := range params {
		answers = append(answers, p.evaluate(ctx, v.seen, f, t, param, namespace))
	}
	for _, answer := range answers {
		v.add(p, b, answer, notes)
	}
	return nil
}

// add applies the binding's actions to a result.
func (v *verdict) add(p *validating, b *binding, answer answer, notes *annotations) {
	for i, d := range answer.decisions {
		if d.failed && !d.deny {
			v.config.Metrics.PolicyDecided(p.name, b.name, d.message, "allow", d.took)
		}
		if !d.deny {
			continue
		}
		for _, action := range b.actions {
			switch action {
			case admissionregistrationv1.Deny:
				v.deny(p, b.name, d)
				v.config.Metrics.PolicyDecided(p.name, b.name, d.message, "deny", d.took)
			case admissionregistrationv1.Warn:
				v.a.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s",
					p.name, b.name, d.message))
				v.config.Metrics.PolicyDecided(p.name, b.name, d.message, "warn", d.took)
			case admissionregistrationv1.Audit:
				v.failures = append(v.failures, failure{d.message, b.policy, b.name, i, b.actions})
				v.config.Metrics.PolicyDecided(p.name, b.name, d.message, "audit", d.took)
			}
		}
	}
	for _, n := range answer.annotations {
		if n.err != "" { // whatever the actions
			v.deny(p, b.name, decision{deny: true, message: n.err})
			v.config.Metrics.PolicyDecided(p.name, b.name, n.err, "deny", 0)
			continue
		}
		notes.add(n.key, n.value)
	}
}

// annotate records the failures of all policies in the audit log, in one annotation.
func (v *verdict) annotate() {
	if len(v.failures) == 0 {
		return
	}
	value, err := json.Marshal(v.failures[:min(len(v.failures), mostFailures)])
	if err == nil {
		v.a.Annotate("validation.policy.admission.k8s.io/validation_failure", string(value))
	}
}

// fault records that a policy or binding cannot be used. The failure policy decides whether that is a denial.
func (v *verdict) fault(p *validating, binding string, err error) {
	if *p.spec.FailurePolicy != admissionregistrationv1.Ignore {
		v.deny(p, binding, decision{deny: true, message: err.Error()})
	}
}

func (v *verdict) deny(p *validating, binding string, d decision) {
	if v.denial == nil {
		v.denial = &denial{p.name, binding, d}
	}
}

// refusal returns the error that the client gets, nil if no policy objects.
func (v *verdict) refusal() error {
	d := v.denial
	if d == nil {
		return nil
	}
	text := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", d.policy, d.message)
	if d.binding != "" {
		text = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", d.policy, d.binding,
			d.message)
	}
	var err *apierrors.StatusError = admit.Forbidden(v.a, errors.New(text))
	err.ErrStatus.Reason = metav1.StatusReasonInvalid
	if d.reason != "" {
		err.ErrStatus.Reason = d.reason
	}
	err.ErrStatus.Code = codeOf(err.ErrStatus.Reason)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Message: text})
	return err
}

// codeOf returns the status code of a reason that a validation may name.
func codeOf(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusUnprocessableEntity
}
