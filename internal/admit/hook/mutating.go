package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/charge"
)

// Mutating calls the webhooks of MutatingWebhookConfigurations.
type Mutating struct {
	config Config
	hooks  *hooks
}

var _ admit.Mutator = (*Mutating)(nil)

// NewMutating returns the plugin.
func NewMutating(c Config) *Mutating {
	c = c.withDefaults()
	return &Mutating{config: c, hooks: newHookSource(&c, "mutatingwebhookconfigurations", admitting, readMutating)}
}

// Name returns kube's name for the plugin.
func (*Mutating) Name() string { return "MutatingAdmissionWebhook" }

// Mutate calls every matching webhook, one after another.
func (p *Mutating) Mutate(ctx context.Context, a *admit.Attributes) error {
	all := p.hooks.concerned(&p.config, a)
	if len(all) == 0 {
		return nil
	}
	r := a.Reinvocation(p.Name())
	r.Begin(a.Object)
	defer func() { r.End(a.Object) }()
	for index, h := range all {
		t, ok, err := h.wants(ctx, &p.config, a)
		if err != nil {
			return err
		}
		if !ok || r.Skip(h.id) {
			continue
		}
		round := 0
		if r.Second() {
			round = 1
		}
		if err := p.ask(ctx, a, h, t, fmt.Sprintf("round_%d_index_%d", round, index)); err != nil {
			return err
		}
	}
	return nil
}

// ask calls one webhook and applies its patch. place is its position among the others, for the audit log.
func (p *Mutating) ask(ctx context.Context, a *admit.Attributes, h *hook, t match.Target, position string) error {
	r := a.Reinvocation(p.Name())
	failed := false
	err := h.ask(ctx, &p.config, a, "failed-open.mutation.webhook.admission.k8s.io/"+position, func() error {
		changed, err := p.change(ctx, a, h, t, position)
		if changed {
			r.Changed()
		}
		failed = err != nil
		return err
	})
	if h.ReinvocationPolicy != nil && *h.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
		r.Ran(h.id)
	}
	if err == nil && failed {
		return timedOut(ctx)
	}
	return err
}

// note is the audit annotation about a webhook.
type note struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	Mutated       *bool  `json:"mutated,omitempty"`
	Patch         any    `json:"patch,omitempty"`
	PatchType     string `json:"patchType,omitempty"`
}

func annotate(to func(key, value string), key string, n note) {
	if value, err := json.Marshal(n); err == nil {
		to(key, string(value))
	}
}

// change calls the webhook and applies its patch to the object. changed reports whether the patch made a difference.
func (p *Mutating) change(
	ctx context.Context, a *admit.Attributes, h *hook, t match.Target, position string,
) (changed bool, err error) {
	defer func() {
		annotate(a.Annotate, "mutation.webhook.admission.k8s.io/"+position,
			note{Configuration: h.configuration, Webhook: h.Name, Mutated: &changed})
	}()
	obj, old, err := a.In(ctx, t.Version)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	v, err := h.call(ctx, &p.config, a, shown{t, obj, old})
	if err != nil || len(v.patch) == 0 {
		return false, err
	}
	if err := request.ChargeBody(ctx, len(v.patch), charge.JSON(v.patch)); err != nil {
		if apierrors.IsRequestEntityTooLargeError(err) {
			err = &callError{h.Name, http.StatusInternalServerError, fmt.Errorf("received too large a patch: %w", err)}
		}
		return false, err // without room for the patch the write fails, not the webhook
	}
	patch, err := jsonpatch.DecodePatch(v.patch)
	if err != nil {
		return false,
			&callError{h.Name, http.StatusInternalServerError,
				fmt.Errorf("received undecodable patch in webhook response: %w", err)}
	}
	if len(patch) == 0 {
		return false, nil
	}
	if obj == nil {
		return false,
			apierrors.NewInternalError(
				fmt.Errorf(
					"admission webhook %q attempted to modify the object, which is not supported for this operation",
					h.Name))
	}
	if v.patchType != admissionv1.PatchTypeJSONPatch {
		return false,
			&callError{h.Name, http.StatusInternalServerError, fmt.Errorf("unsupported patch type %q", v.patchType)}
	}
	next, err := applyPatch(ctx, obj, patch)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	annotate(a.AnnotateRequest, "patch.webhook.admission.k8s.io/"+position,
		note{Configuration: h.configuration, Webhook: h.Name, Patch: patch, PatchType: string(v.patchType)})
	changed = !reflect.DeepEqual(obj, next)
	return changed, put(ctx, a, t, next)
}

// applyPatch returns the patched object. It does not change obj.
func applyPatch(ctx context.Context, obj map[string]any, patch jsonpatch.Patch) (map[string]any, error) {
	v, err := apply.ApplyOperations(ctx, codec.CloneObject(obj), patch)
	if err != nil {
		return nil, err
	}
	next, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the patched object is not an object: %s", codec.AppendJSON(nil, v))
	}
	if kind, _ := next["kind"].(string); kind == "" {
		//lint:ignore ST1005 kube's text
		return nil, fmt.Errorf("Object 'Kind' is missing in '%s'", codec.AppendJSON(nil, v))
	}
	return next, nil
}

// put converts next, an object in the form t, and makes it the object of the write.
func put(ctx context.Context, a *admit.Attributes, t match.Target, next map[string]any) error {
	if err := a.Normalize(t.Version, next); err != nil {
		return apierrors.NewInternalError(err)
	}
	next, err := a.Back(ctx, t.Version, next)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	a.Replace(next)
	return nil
}
