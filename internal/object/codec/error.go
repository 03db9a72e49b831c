package codec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WriteError responds with err as a metav1.Status, in the client's form, and returns that Status so that the caller can
// count and log it: code 500 with reason "" is an unexpected error.
func WriteError(w http.ResponseWriter, r *http.Request, err error) *metav1.Status {
	status := StatusOf(err)
	if f, ok := w.(Failer); ok {
		f.Failed(status)
	}
	header := w.Header()
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	if status.Code == http.StatusUnauthorized && header.Get("WWW-Authenticate") == "" {
		header.Set("WWW-Authenticate", "Bearer") // required by RFC 9110, section 15.5.2; Kubernetes omits it
	}
	m, ok := negotiate(r, noTransform)
	if !ok {
		// The error matters more than the form: use readable JSON.
		m = Media{Type: JSON, Pretty: true}
	}
	doc, err := EncodeStatus(status, m)
	if err != nil {
		panic(fmt.Sprintf("status cannot be encoded: %v", err)) // strings and numbers only
	}
	contentType, body, err := render(doc, m)
	if err != nil {
		panic(fmt.Sprintf("status cannot be rendered: %v", err))
	}
	body = append(bytes.Clone(body), lineEnd(m)...)
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body)
	return status
}

// Failer is a response writer that receives the Status that WriteError is about to write.
type Failer interface{ Failed(status *metav1.Status) }

// EncodeStatus encodes a complete Status for WriteObject: in protobuf if that is m's form, otherwise as JSON.
func EncodeStatus(status *metav1.Status, m Media) ([]byte, error) {
	if m.Type != Protobuf {
		return json.Marshal(status)
	}
	message, err := status.Marshal()
	if err != nil {
		return nil, err
	}
	return Enclose(status.APIVersion, status.Kind, message), nil
}

// maxMessage is the size in bytes of the longest message of a Status. A client sizes many: a list of unknown fields, a
// patch that is shown.
const maxMessage = 2 << 20

// maxCode is the largest status code that HTTP has: three digits (RFC 9110, section 15).
const maxCode = 999

// StatusOf returns the Status for err: its own if it has one, 504 if the request's time is over, otherwise 500 with its
// text. A code that is not a final HTTP status becomes 500. kind and apiVersion are set.
func StatusOf(err error) *metav1.Status {
	var status metav1.Status
	var carrier apierrors.APIStatus
	switch {
	case errors.As(err, &carrier):
		status = carrier.Status()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		cause := context.DeadlineExceeded
		if errors.Is(err, context.Canceled) {
			cause = context.Canceled
		}
		status = apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %v", cause),
			0).Status()
	default:
		status = metav1.Status{Message: err.Error(), Reason: metav1.StatusReasonUnknown}
	}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
		if status.Status == metav1.StatusSuccess {
			status.Code = http.StatusOK
		}
	}
	if status.Code < http.StatusOK || status.Code > maxCode {
		status.Code = http.StatusInternalServerError
	}
	status.Kind, status.APIVersion = "Status", "v1"
	if len(status.Message) > maxMessage {
		status.Message = strings.ToValidUTF8(status.Message[:maxMessage], "") + "..."
	}
	return &status
}
