package verb

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// optimisticLock is what a client reads whose resourceVersion is not the newest.
const optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"

func conflict(c *Call, name string) error {
	return apierrors.NewConflict(c.GroupResource(), name, errors.New(optimisticLock))
}

// tooLargeRevision is the answer to a read at a revision that does not exist yet: clients that keep talking to several
// replicas wait a second and ask again.
func tooLargeRevision(want, have int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", want, have), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return err
}

// badListRevision words an error of parseRevision as a list does, and returns any other error as it is.
func badListRevision(err error) error {
	var bad *field.Error
	if errors.As(err, &bad) {
		return apierrors.NewBadRequest("invalid resource version: " + bad.Error())
	}
	return err
}

// tooOldList is the answer to a list at an exact revision that has been compacted.
func tooOldList() error {
	return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
}

// tooOldContinue answers a continue token whose revision has been compacted. token continues the list at the newest
// revision, for clients that would rather have an inconsistent list than start again.
func tooOldContinue(token string) error {
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

// terminating refuses new objects of a kind whose definition is being deleted.
func terminating(c *Call, verb string) error {
	err := apierrors.NewMethodNotSupported(c.GroupResource(), verb)
	err.ErrStatus.Message = fmt.Sprintf("%v not allowed while custom resource definition is terminating", verb)
	return err
}

// tooOldWatch ends a watch whose revision has left the history.
func tooOldWatch(from, now int64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, now))
}

// storeError turns what the store says into what the client is told.
func storeError(err error, c *Call, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrExists):
		return apierrors.NewAlreadyExists(c.GroupResource(), name)
	case errors.Is(err, store.ErrNotFound):
		return apierrors.NewNotFound(c.GroupResource(), name)
	case errors.Is(err, store.ErrNoSpace):
		return errors.New("etcdserver: mvcc: database space exceeded") // kube's text
	case errors.Is(err, store.ErrTooLarge):
		return errors.New("etcdserver: request is too large") // kube's text
	case errors.Is(err, context.DeadlineExceeded):
		// Nothing says when to try again: client-go would then repeat a write that may have happened.
		return apierrors.NewTimeoutError("the store did not answer in time; the write may or may not have happened", 0)
	default:
		return err
	}
}
