package hook

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Validating calls the webhooks of ValidatingWebhookConfigurations.
type Validating struct {
	config Config
	hooks  *hooks
}

var _ admit.Validator = (*Validating)(nil)

// NewValidating returns the plugin.
func NewValidating(c Config) *Validating {
	c = c.withDefaults()
	return &Validating{config: c, hooks: newHookSource(&c, "validatingwebhookconfigurations", validating, readValidating)}
}

// Name returns kube's name for the plugin.
func (*Validating) Name() string { return "ValidatingAdmissionWebhook" }

// pendingCall is one pending call.
type pendingCall struct {
	hook *hook
	shown
}

// shown holds the objects of a write in the webhook's version.
type shown struct {
	target   match.Target
	obj, old map[string]any
}

// Validate calls all matching webhooks concurrently, and waits for all of them. If several refuse, the client gets the
// first refusal in the order of the webhooks; in Kubernetes, the first to arrive.
func (p *Validating) Validate(ctx context.Context, a *admit.Attributes) error {
	pendingCalls, err := p.pendingCalls(ctx, a)
	if err != nil || len(pendingCalls) == 0 {
		return err
	}
	if err := timedOut(ctx); err != nil {
		return err
	}
	errs := make([]error, len(pendingCalls))
	var wg sync.WaitGroup
	for i, q := range pendingCalls {
		wg.Go(func() {
			annotation := fmt.Sprintf("failed-open.validating.webhook.admission.k8s.io/round_0_index_%d", i)
			errs[i] = q.hook.ask(ctx, &p.config, a, annotation, func() error {
				_, err := q.hook.call(ctx, &p.config, a, q.shown)
				return err
			})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Validating) pendingCalls(ctx context.Context, a *admit.Attributes) (out []pendingCall, err error) {
	forms := map[*catalog.Version]pendingCall{}
	for _, h := range p.hooks.concerned(&p.config, a) {
		t, ok, err := h.wants(ctx, &p.config, a)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		q, known := forms[t.Version]
		if !known {
			if q.obj, q.old, err = a.In(ctx, t.Version); err != nil {
				return nil, apierrors.NewInternalError(err)
			}
			forms[t.Version] = q
		}
		q.hook, q.target = h, t
		out = append(out, q)
	}
	return out, nil
}
