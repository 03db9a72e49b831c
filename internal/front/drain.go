package front

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// drain refuses requests once shutdown has begun, so that the client tries another server or again; probes are
// answered.
func (s *Server) drain(x *exchange, next func(*exchange)) {
	if s.closing.Err() != nil && !probe(x.info.Path) {
		err := apierrors.NewServiceUnavailable("apiserver is shutting down")
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
		x.w.Header().Set("Connection", "close")
		s.fail(x, err)
		return
	}
	next(x)
}
