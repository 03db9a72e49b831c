package rest

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/verb"
)

// methodNotSupported is the error for a verb that the call's resource does not support. For built-in kinds Kubernetes'
// router returns it before it resolves the resource.
func methodNotSupported(c *verb.Call, verb string) error {
	if c.Resource.Custom() {
		return apierrors.NewMethodNotSupported(c.GroupResource(), verb)
	}
	return apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, verb, schema.GroupResource{}, "", "", 0,
		false)
}

// refuseWatch refuses a watch of a resource that supports only lists. In Kubernetes the list handler returns this
// error.
func refuseWatch(_ http.ResponseWriter, _ *http.Request, c *verb.Call) error {
	return apierrors.NewMethodNotSupported(c.GroupResource(), "watch")
}

// nameless is the error for changing a collection with a verb that needs a name.
func nameless(c *verb.Call) error {
	if c.Resource.Custom() {
		return apierrors.NewBadRequest("name must be provided")
	}
	return methodNotSupported(c, c.Verb)
}

// bodyTooLarge is the error for a request body above the limit.
func bodyTooLarge(limit int64) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
}
