package policystatus

import (
	"context"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// policyManager is the field manager of kube's controller.
const policyManager = "validatingadmissionpolicy-status"

// policyCheckers is how many policies are checked at a time, as in Kubernetes.
const policyCheckers = 5

// policyTypes reports in the status of ValidatingAdmissionPolicies the type errors of their expressions, by the schemas
// of the matched kinds. As in Kubernetes a policy is checked when its spec has changed; a changed schema or a new kind
// causes no new check.
type policyTypes struct {
	*part.Host
}

func (p *policyTypes) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == ref.ValidatingAdmissionPolicies.Prefix && ev.Type != watchcache.Deleted {
		need(ev.Entry.Name)
	}
}

func (p *policyTypes) Reconcile(ctx context.Context, name string) error {
	entry := p.View.Collection(ref.ValidatingAdmissionPolicies.Prefix).Snapshot().Get("", name)
	if entry == nil {
		return nil
	}
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := json.Unmarshal(entry.JSON(), &policy); err != nil {
		return fmt.Errorf("decode policy %s: %w", name, err)
	}
	if policy.Generation <= policy.Status.ObservedGeneration {
		return nil
	}
	warnings := registration.TypeWarnings(&policy.Spec, p.Catalog.Snapshot(), p.schemaOf)
	return p.report(ctx, &policy, warnings)
}

// schemaOf returns the schema of a served kind, or nil if it cannot be built: this must not block other work.
func (p *policyTypes) schemaOf(kind schema.GroupVersionKind) *spec.Schema {
	r := p.Catalog.Snapshot().ByKind(kind.Group, kind.Kind)
	if r == nil {
		return nil
	}
	v := r.Version(kind.Version)
	if v == nil || !v.Served {
		return nil
	}
	s, err := p.Schema(r, v)
	if err != nil {
		p.Log.Warn("the types of a policy cannot be checked", "kind", kind, "err", err)
		return nil
	}
	return s
}

func (p *policyTypes) report(
	ctx context.Context, policy *admissionregistrationv1.ValidatingAdmissionPolicy,
	warnings []admissionregistrationv1.ExpressionWarning,
) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": admissionregistrationv1.SchemeGroupVersion.String(), "kind": "ValidatingAdmissionPolicy",
		"metadata": map[string]any{"name": policy.Name},
		"status": admissionregistrationv1.ValidatingAdmissionPolicyStatus{
			ObservedGeneration: policy.Generation,
			TypeChecking:       &admissionregistrationv1.TypeChecking{ExpressionWarnings: warnings},
		},
	})
	if err != nil {
		return fmt.Errorf("encode the status of policy %s: %w", policy.Name, err)
	}
	call, err := p.Verbs.Call(ref.ValidatingAdmissionPolicies.GroupResource(),
		"", policy.Name, control.ControllerUser(controller))
	if err != nil {
		return err
	}
	call = call.Under("status")
	force := true
	_, err = p.Verbs.Apply(ctx, call, decode.Patch{Type: types.ApplyYAMLPatchType, Data: body},
		metav1.PatchOptions{FieldManager: policyManager, Force: &force})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
