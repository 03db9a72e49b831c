package read

import (
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// parseVersion parses a resourceVersion parameter. As in Kubernetes, its error becomes a 500 for a get and a watch, and
// a 400 for a list.
func parseVersion(text string) (int64, error) {
	v, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	}
	return int64(v), nil
}

// tooLarge is the error for a read at a revision that does not exist yet. A client that talks to several replicas waits
// a second and retries.
func tooLarge(want, have int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", want, have), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return err
}

// inList converts an error of parseVersion to the wording of lists, and returns any other error unchanged.
func inList(err error) error {
	var bad *field.Error
	if errors.As(err, &bad) {
		return apierrors.NewBadRequest("invalid resource version: " + bad.Error())
	}
	return err
}

// tooOldList is the error for a list at an exact revision that has been compacted.
func tooOldList() error {
	return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
}

// tooOldToken is the error for a continue token with a compacted revision. token continues the list at the newest
// revision, for clients that prefer an inconsistent list to a restart.
func tooOldToken(token string) error {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old " +
		"to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided " +
		"token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned " +
		"and now may show up in the list.")
	err.ErrStatus.ListMeta.Continue = token
	return err
}

// tooOldWatch ends a watch at a revision that has left the history.
func tooOldWatch(from, now int64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, now))
}
