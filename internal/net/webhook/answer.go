package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

const (
	// smallAnswer is the size up to which a response is read without one of the endpoint's slots for large responses.
	smallAnswer = 64 << 10
	// maxErrorText bounds the part of an error's body that is repeated to the client, as in Kubernetes.
	maxErrorText = 2048
)

// maxAnswer is the largest response to a body of size bytes. Converted objects are about as long as their originals; a
// patch contains at most one object, which is no longer than a request's body, as base64.
func maxAnswer(size int) int64 { return 5<<20 + 4*int64(size) }

// read turns a response into a body or an error. wait is not negative if the webhook requests a retry.
func (e *endpoint) read(ctx context.Context, resp *http.Response, limit int64) (answer []byte, wait time.Duration,
	err error) {
	body, err := e.body(ctx, resp, limit)
	if err != nil {
		return nil, -1, fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", err)
	}
	contentType, media := resp.Header.Get("Content-Type"), ""
	if contentType != "" {
		if media, _, err = mime.ParseMediaType(contentType); err != nil {
			return nil, -1, apierrors.NewInternalError(err)
		}
	}
	if resp.StatusCode < http.StatusOK || resp.StatusCode > http.StatusPartialContent {
		seconds, requested := retryAfter(resp)
		wait = -1
		if requested &&
			(resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError) {
			wait = time.Duration(seconds) * time.Second
		}
		return nil, wait, refusal(resp.StatusCode, media, body, seconds)
	}
	if len(body) == 0 {
		return nil, -1,
			fmt.Errorf("0-length response with status code: %d and content type: %s", resp.StatusCode, contentType)
	}
	return body, -1, nil
}

// body reads the response up to limit bytes.
func (e *endpoint) body(ctx context.Context, resp *http.Response, limit int64) ([]byte, error) {
	tooLong := &foreign.TooLong{Limit: limit}
	if resp.ContentLength > limit {
		return nil, tooLong
	}
	var buf bytes.Buffer
	buf.Grow(int(min(max(resp.ContentLength+1, bytes.MinRead), smallAnswer)))
	if n, err := io.CopyN(&buf, resp.Body, smallAnswer); err != nil || n < smallAnswer {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return buf.Bytes(), err
	}
	select {
	case e.large <- struct{}{}:
		defer func() { <-e.large }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, err := io.Copy(&buf, io.LimitReader(resp.Body, limit+1-smallAnswer)); err != nil {
		return nil, err
	}
	if int64(buf.Len()) > limit {
		return nil, tooLong
	}
	return buf.Bytes(), nil
}

// refusal is the error for an unsuccessful response: the Status in it if there is one, else the error of Kubernetes'
// clients for its code and text.
func refusal(code int, media string, body []byte, retryAfter int) error {
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Status == metav1.StatusFailure {
		foreign.Status(&status)
		return &apierrors.StatusError{ErrStatus: status}
	}
	text := "unknown"
	if media == "" || strings.HasPrefix(media, "text/") {
		text = strings.TrimSpace(string(body[:min(len(body), maxErrorText)]))
	}
	return apierrors.NewGenericServerResponse(code, http.MethodPost, schema.GroupResource{}, "", text, retryAfter, true)
}

// retryAfter returns the value of the header Retry-After in seconds, and whether there is one.
func retryAfter(resp *http.Response) (seconds int, ok bool) {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	return seconds, err == nil && seconds >= 0
}
