package hook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/match"
)

// callError says that a webhook could not be asked, or did not give a usable answer. The failure policy decides what that
// means for the write.
type callError struct {
	webhook string
	reason  error
}

func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.webhook, e.reason)
}

func (e *callError) Unwrap() error { return e.reason }

// call asks the webhook about a write that it wants to see, and returns its answer. An error is a *callError, or what the
// client gets.
func (h *hook) call(ctx context.Context, c *Config, a *admit.Attributes, t match.Target, obj, old map[string]any, mutating bool) (*verdict, error) {
	fail := func(format string, args ...any) (*verdict, error) {
		return nil, &callError{h.Name, fmt.Errorf(format, args...)}
	}
	if a.DryRun {
		if h.SideEffects == nil {
			return fail("Webhook SideEffects is nil")
		}
		if s := *h.SideEffects; s != admissionregistrationv1.SideEffectClassNone && s != admissionregistrationv1.SideEffectClassNoneOnDryRun {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", h.Name))
		}
	}
	version, ok := h.reviewVersion()
	if !ok {
		return fail("could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)")
	}
	uid := c.NewUID()
	target := h.target
	if limit, set := h.timeout(ctx); set {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		if target.Timeout = limit.Truncate(time.Second); target.Timeout < limit {
			target.Timeout += time.Second // the webhook is told whole seconds
		}
	}
	raw, err := c.Client.Call(ctx, target, encodeReview(version, uid, a, t, obj, old))
	if err != nil {
		return fail("failed to call webhook: %w", err)
	}
	v, err := decodeReview(version, uid, mutating, raw)
	if err != nil {
		var undecodable *decodeError
		if errors.As(err, &undecodable) {
			return fail("failed to call webhook: %w", undecodable.err)
		}
		return fail("received invalid webhook response: %w", err)
	}
	for key, value := range v.annotations {
		a.Annotate(h.Name+"/"+key, value)
	}
	for _, w := range v.warnings {
		a.Warn(w)
	}
	if !v.allowed {
		return nil, refusal(h.Name, v.result)
	}
	return v, nil
}

// reviewVersion returns the first version of AdmissionReview that both sides speak.
func (h *hook) reviewVersion() (string, bool) {
	for _, v := range h.AdmissionReviewVersions {
		if v == "v1" || v == "v1beta1" {
			return v, true
		}
	}
	return "", false
}

// refusal is the error of a webhook that says no: its own Status, made into one of a failure.
func refusal(webhook string, said *metav1.Status) *apierrors.StatusError {
	status := metav1.Status{Status: metav1.StatusFailure}
	if said != nil {
		status = *said
	}
	status.Code = max(status.Code, http.StatusBadRequest)
	if status.Status == "" || status.Status == metav1.StatusSuccess {
		status.Status = metav1.StatusFailure
	}
	denied := fmt.Sprintf("admission webhook %q denied the request", webhook)
	switch {
	case status.Message != "":
		status.Message = fmt.Sprintf("%s: %s", denied, status.Message)
	case status.Reason != "":
		status.Message = fmt.Sprintf("%s: %s", denied, status.Reason)
	default:
		status.Message = denied + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// pass decides about a failed call: nil if the write may go on without the webhook. annotation is the key under which the
// audit log is told that.
func (h *hook) pass(ctx context.Context, c *Config, a *admit.Attributes, err error, annotation string) error {
	var failed *callError
	if !errors.As(err, &failed) {
		return err
	}
	if !h.ignoresFailures() {
		return apierrors.NewInternalError(failed)
	}
	if !errors.Is(err, context.Canceled) {
		c.Log.Warn("a webhook could not be asked; the write goes on", "webhook", h.Name, "configuration", h.configuration, "err", err)
		a.Annotate(annotation, h.Name)
	}
	return nil
}

// timedOut is the answer when the request's own time is over.
func timedOut(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
}
