package rest

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/verb"
)

// methodNotSupported is the answer to a verb that the call's resource does not have. Kube's router answers for built-in
// kinds before the resource is known.
func methodNotSupported(c *verb.Call, verb string) error {
	if c.Resource.Custom() {
		return apierrors.NewMethodNotSupported(c.GroupResource(), verb)
	}
	return apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, verb, schema.GroupResource{}, "", "", 0,
		false)
}

// refuseWatch is the answer to a watch of what can only be listed. It comes from the list's handler in Kubernetes.
func refuseWatch(_ http.ResponseWriter, _ *http.Request, c *verb.Call) error {
	return apierrors.NewMethodNotSupported(c.GroupResource(), "watch")
}

// nameless is the answer to a change of a collection by a verb that needs a name.
func nameless(c *verb.Call) error {
	if c.Resource.Custom() {
		return apierrors.NewBadRequest("name must be provided")
	}
	return methodNotSupported(c, c.Verb)
}

// bodyTooLarge answers a request body above the limit.
func bodyTooLarge(limit int64) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
}
