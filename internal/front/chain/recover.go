package chain

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recover turns a panic into a 500 and a log line. A response that has begun is aborted. A handler can request that
// with http.ErrAbortHandler.
func (c *Chain) recover(x *exchange, next func(*exchange)) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler)
		}
		x.logPanic(fmt.Sprint(cause), debug.Stack())
		if x.code != 0 {
			panic(http.ErrAbortHandler)
		}
		x.reset()
		c.fail(x, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Reason:  metav1.StatusReasonInternalError,
			Message: "This request caused apiserver to panic. Look in the logs for details.",
		}})
	}()
	next(x)
}

func (x *exchange) logPanic(cause string, stack []byte) {
	x.chain.config.Log.Error("panic", "cause", cause, "method", x.r.Method, "path", x.r.URL.Path, "auditID",
		x.scope.AuditID, "stack", string(stack))
}
