package chain

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// drain refuses requests once shutdown has begun, so that the client tries another server or again; probes are
// answered.
func (c *Chain) drain(x *exchange, next func(*exchange)) {
	if c.Closed() && !probe(x.info.Path) {
		err := apierrors.NewServiceUnavailable("apiserver is shutting down")
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
		x.w.Header().Set("Connection", "close")
		c.fail(x, err)
		return
	}
	next(x)
}

// probe reports whether path is a health endpoint.
func probe(path string) bool {
	return path == "/livez" || path == "/readyz" || path == "/healthz" ||
		strings.HasPrefix(path, "/livez/") || strings.HasPrefix(path, "/readyz/") ||
		strings.HasPrefix(path, "/healthz/")
}
