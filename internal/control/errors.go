package control

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IgnoreNotFound drops the error of a write to an object that is gone.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// IgnoreExists drops the error of a create that came second: another replica has made the object.
func IgnoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Refused reports whether a write of the server's own ended in an answer of the API: policies and webhooks may refuse
// it. That does not keep the server from starting, or the administrator who has configured it so could not change it
// any more.
func Refused(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && ctx.Err() == nil && !apierrors.IsTimeout(err) // which is the store's
}
