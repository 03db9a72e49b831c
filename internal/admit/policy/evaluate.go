package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/expr"
	"github.com/bowsprit/bowsprit/internal/admit/match"
)

// answer is a policy's result for a write, with one parameter.
type answer struct {
	decisions   []decision // one for each validation, or one for all of them
	annotations []annotation
}

// decision is the result of one validation. The zero value allows the write.
type decision struct {
	deny    bool
	failed  bool // the evaluation failed
	message string
	reason  metav1.StatusReason // "" after an error
	took    time.Duration       // for the expression
}

// annotation is a value for the audit log, or the error of its expression.
type annotation struct{ key, value, err string }

// evaluate runs the policy's expressions. param is nil without parameters, namespace if it is unused.
func (p *validating) evaluate(
	ctx context.Context, s *seen, f *form, t match.Target, param, namespace map[string]any,
) answer {
	program := p.program()
	in := s.input(f, t, param)
	if len(program.conditions) > 0 {
		// Conditions use the original request, without a namespace.
		input := *in
		input.Request = func() map[string]any { return expr.Request(s.a, match.AsRequested(s.a).Resource, t.Kind) }
		holds, err := s.config.hold(ctx, p.name, s.a, program.conditions, &input)
		if err != nil && p.ignoresFailures() {
			return answer{}
		}
		if err != nil {
			return answer{decisions: []decision{p.failure(err)}}
		}
		if !holds {
			return answer{}
		}
	}
	in.Namespace = namespace
	results, messages, messageErr, err := p.validate(ctx, in)
	if err != nil {
		return answer{decisions: []decision{p.failure(err)}}
	}
	out := answer{decisions: make([]decision, 0, len(results))}
	for i, r := range results {
		var message expr.Result
		if messages != nil {
			message = messages[i]
		}
		d := p.decide(i, r, message, messageErr)
		d.took = r.Took
		out.decisions = append(out.decisions, d)
	}
	if len(program.annotations) == 0 {
		return out
	}
	in.Authorizer = nil // as in Kubernetes, although authorizer compiles
	annotations, _, err := expr.Run(ctx, program.annotations, in, expr.Budget)
	if err != nil {
		return answer{decisions: []decision{p.failure(err)}}
	}
	for i, r := range annotations {
		if n, ok := p.annotation(i, r); ok {
			out.annotations = append(out.annotations, n)
		}
	}
	return out
}

// validate runs the validations and, with the rest of the budget, their messages. messages is nil if there are none or
// messageErr ended their evaluation.
func (p *validating) validate(ctx context.Context, in *expr.Input) (results, messages []expr.Result, messageErr,
	err error) {
	program := p.program()
	results, left, err := expr.Run(ctx, program.validations, in, expr.Budget)
	if err != nil || program.messages == nil {
		return results, nil, nil, err
	}
	messageInput := *in
	messageInput.Authorizer = nil
	messages, _, messageErr = expr.Run(ctx, program.messages, &messageInput, left)
	if messageErr != nil && in.Estimated && expr.EndsAll(messageErr) {
		// The rest of the budget was an estimate; now the exact value matters.
		in.Exact, in.Estimated = true, false
		return p.validate(ctx, in)
	}
	return results, messages, messageErr, nil
}

func (p *validating) ignoresFailures() bool {
	return *p.spec.FailurePolicy == admissionregistrationv1.Ignore
}

// failure is the decision that an error leads to.
func (p *validating) failure(err error) decision {
	return decision{deny: !p.ignoresFailures(), failed: true, message: err.Error()}
}

// decide returns the decision of validation i. message is the result of its messageExpression, messageErr the error
// that ended the evaluation of all of them.
func (p *validating) decide(i int, r, message expr.Result, messageErr error) decision {
	switch {
	case r.Err != nil:
		return p.failure(r.Err)
	case expr.EndsAll(messageErr):
		return p.failure(fmt.Errorf("failed messageExpression: %w", messageErr))
	case r.True():
		return decision{}
	}
	v := &p.spec.Validations[i]
	d := decision{deny: true, reason: metav1.StatusReasonInvalid}
	if v.Reason != nil {
		d.reason = *v.Reason
	}
	if text, ok := message.Text(); ok {
		d.message = usableMessage(text)
	}
	if d.message == "" {
		d.message = strings.TrimSpace(v.Message)
	}
	if d.message == "" {
		d.message = fmt.Sprintf("failed expression: %v", strings.TrimSpace(v.Expression))
	}
	return d
}

// usableMessage returns the result of a messageExpression, or "" if it is unsuitable for a client.
func usableMessage(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > expr.MaxMessage || strings.Contains(s, "\n") {
		return ""
	}
	return s
}

// annotation returns audit annotation i; ok is false if there is none.
func (p *validating) annotation(i int, r expr.Result) (annotation, bool) {
	n := annotation{key: p.spec.AuditAnnotations[i].Key}
	if r.Err != nil {
		n.err = r.Err.Error()
		return n, !p.ignoresFailures()
	}
	if text, ok := r.Text(); ok {
		n.value = strings.TrimSpace(text)
		return n, n.value != ""
	}
	if r.Absent() {
		return n, false
	}
	n.err = fmt.Sprintf(
		"valueExpression '%v' resulted in unsupported return type: %v. Return type must be either string or null.",
		p.spec.AuditAnnotations[i].ValueExpression, r.TypeName())
	return n, true
}

// maxAnnotation is how long the value of an annotation can be, in bytes.
const maxAnnotation = 10 * 1024

// annotations collects the values of a policy's annotations from all bindings and parameters.
type annotations struct {
	keys   []string
	values map[string][]string
}

func (n *annotations) add(key, value string) {
	value = value[:min(len(value), maxAnnotation)]
	if n.values == nil {
		n.values = map[string][]string{}
	}
	if n.values[key] == nil {
		n.keys = append(n.keys, key)
	}
	if !slices.Contains(n.values[key], value) {
		n.values[key] = append(n.values[key], value)
	}
}

func (n *annotations) publish(a *admit.Attributes, policy string) {
	for _, key := range n.keys {
		a.Annotate(policy+"/"+key, strings.Join(n.values[key], ", "))
	}
}
