package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit/expr"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// mutating is a MutatingAdmissionPolicy. Its expressions are compiled when they are first needed.
type mutating struct {
	name    string
	spec    *admissionregistrationv1.MutatingAdmissionPolicySpec
	match   criteria
	program func() *mutatingProgram
}

type mutatingProgram struct {
	conditions []*expr.Expression
	mutations  []mutation
	namespace  bool // needs namespaceObject
}

// mutation is one change of an object: an apply configuration, or a JSON patch.
type mutation struct {
	expression *expr.Expression
	patch      func(ctx context.Context, t match.Target, obj map[string]any, r expr.Result) (map[string]any, error)
}

func newMutating(e *watchcache.Entry) (*mutating, bool) {
	var p admissionregistrationv1.MutatingAdmissionPolicy
	if !decode(e, registration.DefaultPolicy, &p) {
		return nil, false
	}
	return mutatingOf(&p), true
}

func mutatingOf(p *admissionregistrationv1.MutatingAdmissionPolicy) *mutating {
	m := &mutating{name: p.Name, spec: &p.Spec, match: policyCriteria(p.Spec.MatchConstraints)}
	m.program = sync.OnceValue(func() *mutatingProgram { return compileMutating(m.spec) })
	return m
}

func (m *mutating) policyName() string { return m.name }

func newMutatingBinding(e *watchcache.Entry) (*binding, bool) {
	var b admissionregistrationv1.MutatingAdmissionPolicyBinding
	if !decode(e, registration.DefaultBinding, &b) {
		return nil, false
	}
	return mutatingBindingOf(&b), true
}

func mutatingBindingOf(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) *binding {
	return &binding{
		name: b.Name, policy: b.Spec.PolicyName, params: b.Spec.ParamRef, match: compileCriteria(b.Spec.MatchResources),
	}
}

func compileMutating(spec *admissionregistrationv1.MutatingAdmissionPolicySpec) *mutatingProgram {
	scope := expr.Scope{Params: spec.ParamKind != nil, Authorizer: true}
	c, namespace := compileVariables(spec.Variables, scope)
	p := &mutatingProgram{conditions: compileConditions(c, spec.MatchConditions, scope), namespace: namespace}
	scope.Patch = true
	for _, m := range spec.Mutations {
		var compiled mutation
		switch {
		case m.PatchType == admissionregistrationv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			compiled = mutation{c.Compile(m.JSONPatch.Expression, scope, expr.Stored, expr.JSONPatches), patchJSON}
		case m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			compiled = mutation{c.Compile(m.ApplyConfiguration.Expression, scope, expr.Stored, expr.Applied),
				applyConfiguration}
		default:
			continue
		}
		p.mutations = append(p.mutations, compiled)
		p.namespace = p.namespace || compiled.expression.Namespace
	}
	return p
}

func (m *mutating) ignoresFailures() bool {
	return *m.spec.FailurePolicy == admissionregistrationv1.Ignore
}

func applyConfiguration(_ context.Context, t match.Target, obj map[string]any, r expr.Result) (map[string]any, error) {
	fields, err := r.AppliedFields()
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = obj["apiVersion"], obj["kind"]
	next, err := apply.Overlay(t.Version, obj, fields)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %w", err)
	}
	return runtime.DeepCopyJSON(next), nil // the source object must not change
}

func patchJSON(ctx context.Context, _ match.Target, obj map[string]any, r expr.Result) (map[string]any, error) {
	operations, err := r.Operations()
	if err != nil {
		return nil, err
	}
	patch := jsonpatch.Patch{}
	for _, o := range operations {
		patch = append(patch, operation(o))
	}
	v, err := apply.ApplyOperations(ctx, codec.CloneObject(obj), patch)
	if errors.Is(err, jsonpatch.ErrTestFailed) {
		return codec.CloneObject(obj), nil // a test operation of the patch failed
	}
	if err != nil {
		return nil, fmt.Errorf("JSON Patch: %w", err)
	}
	next, ok := v.(map[string]any)
	if !ok {
		raw := codec.AppendJSON(nil, v)
		return nil, apierrors.NewInternalError(fmt.Errorf("the patched object is not an object: %s", raw))
	}
	return next, nil
}

func operation(o expr.Operation) jsonpatch.Operation {
	out := jsonpatch.Operation{"op": text(o.Op), "path": text(o.Path)}
	if o.From != "" {
		out["from"] = text(o.From)
	}
	if o.Value != nil {
		out["value"] = &o.Value
	}
	return out
}

func text(s string) *json.RawMessage {
	raw, _ := json.Marshal(s) // strings can always be encoded
	m := json.RawMessage(raw)
	return &m
}
