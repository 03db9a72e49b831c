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
	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/request"
)

// callError is the error of a webhook call that failed or returned an unusable response. The failure policy decides
// about its effect on the write.
type callError struct {
	webhook string
	code    int32 // code for metrics
	reason  error
}

func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.webhook, e.reason)
}

func (e *callError) Unwrap() error { return e.reason }

// refusal is the error of a webhook that denies a write. The client gets status.
type refusal struct{ status *apierrors.StatusError }

func (e *refusal) Error() string { return e.status.Error() }

// phase returns the phase of the request that includes the webhook call.
func (h *hook) phase() request.Phase {
	if h.half == admitting {
		return request.MutatingWebhooks
	}
	return request.ValidatingWebhooks
}

// ask runs call, which calls the webhook, counts it, and returns the error for the client: nil if the write may
// continue. annotation is the audit annotation for a write that continues although the call failed.
func (h *hook) ask(ctx context.Context, c *Config, a *admit.Attributes, annotation string, call func() error) error {
	began := time.Now()
	err := call()
	took := time.Since(began)
	request.Spend(ctx, h.phase(), took)
	counted := admit.WebhookCall{Name: h.Name, Type: h.half, Operation: a.Operation, Code: http.StatusOK}
	if err == nil {
		c.Metrics.WebhookCalled(counted, took, "")
		return nil
	}
	var failed *callError
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		counted.Code, counted.Rejected = refused.status.ErrStatus.Code, true
		c.Metrics.WebhookCalled(counted, took, "no_error")
		return refused.status
	case !errors.As(err, &failed):
		counted.Code, counted.Rejected = 0, true
		c.Metrics.WebhookCalled(counted, took, "apiserver_internal_error")
		return err
	}
	counted.Code, counted.Rejected = failed.code, !h.ignoresFailures()
	left := errors.Is(err, context.Canceled) // the client has disconnected
	why := ""
	if counted.Rejected && !left {
		why = "calling_webhook_error"
	}
	c.Metrics.WebhookCalled(counted, took, why)
	if counted.Rejected {
		if !left {
			c.Log.Warn("admission webhook failed; matching writes are refused until it responds", "webhook",
				h.Name,
				"configuration", h.configuration, "error", err)
		}
		return apierrors.NewInternalError(failed)
	}
	if !left {
		c.Log.Warn("admission webhook failed; writes continue without it, because of its failurePolicy", "webhook", h.Name,
			"configuration", h.configuration, "error", err)
		c.Metrics.WebhookFailedOpen(counted)
		a.Annotate(annotation, h.Name)
	}
	return nil
}

// call calls the webhook for a matching write and returns its response. An error is a *callError, a *refusal, or the
// error for the client.
func (h *hook) call(
	ctx context.Context, c *Config, a *admit.Attributes, object shown,
) (*verdict, error) {
	fail := func(code int32, format string, args ...any) (*verdict, error) {
		return nil, &callError{h.Name, code, fmt.Errorf(format, args...)}
	}
	if a.DryRun {
		if h.SideEffects == nil {
			return fail(http.StatusBadRequest, "Webhook SideEffects is nil")
		}
		if s := *h.SideEffects; s != admissionregistrationv1.SideEffectClassNone &&
			s != admissionregistrationv1.SideEffectClassNoneOnDryRun {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", h.Name))
		}
	}
	version, ok := h.reviewVersion()
	if !ok {
		return fail(http.StatusBadRequest,
			"could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)")
	}
	uid := c.NewUID()
	target := h.target
	target.Credentials = c.Credentials
	if limit, set := h.timeout(ctx); set {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		if target.Timeout = limit.Truncate(time.Second); target.Timeout < limit {
			target.Timeout += time.Second // the webhook receives whole seconds
		}
	}
	ctx, span := h.startSpan(ctx, a, uid)
	defer span.End()
	raw, err := c.Client.Call(ctx, target, encodeReview(version, uid, a, object))
	if err != nil {
		return fail(codeOf(err), "failed to call webhook: %w", err)
	}
	v, err := decodeReview(version, uid, h.half == admitting, raw)
	if err != nil {
		var undecodable *decodeError
		if errors.As(err, &undecodable) {
			return fail(http.StatusServiceUnavailable, "failed to call webhook: %w", undecodable.err)
		}
		return fail(http.StatusServiceUnavailable, "received invalid webhook response: %w", err)
	}
	for key, value := range v.annotations {
		a.Annotate(h.Name+"/"+key, value)
	}
	for _, w := range v.warnings {
		a.Warn(w)
	}
	if !v.allowed {
		return nil, &refusal{denied(h.Name, v.result)}
	}
	return v, nil
}

// reviewVersion returns the first version of AdmissionReview that both sides support.
func (h *hook) reviewVersion() (string, bool) {
	for _, v := range h.AdmissionReviewVersions {
		if v == "v1" || v == "v1beta1" {
			return v, true
		}
	}
	return "", false
}

// denied returns the error of a webhook's denial: its own Status, turned into a failure.
func denied(webhook string, answer *metav1.Status) *apierrors.StatusError {
	status := metav1.Status{Status: metav1.StatusFailure}
	if answer != nil {
		status = *answer
		foreign.Status(&status)
	}
	if status.Code < http.StatusBadRequest || status.Code > 999 { // not an error, or not an HTTP status
		status.Code = http.StatusBadRequest
	}
	if status.Status == "" || status.Status == metav1.StatusSuccess {
		status.Status = metav1.StatusFailure
	}
	text := fmt.Sprintf("admission webhook %q denied the request", webhook)
	switch {
	case status.Message != "":
		status.Message = fmt.Sprintf("%s: %s", text, status.Message)
	case status.Reason != "":
		status.Message = fmt.Sprintf("%s: %s", text, status.Reason)
	default:
		status.Message = text + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// timedOut is the error after the request's own time is over.
func timedOut(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
}

// codeOf returns the code of a failed call for metrics.
func codeOf(err error) int32 {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status.ErrStatus.Code
	}
	return http.StatusServiceUnavailable
}
