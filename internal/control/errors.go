package control

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IgnoreNotFound drops the error of a write to a deleted object.
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

// Refused reports whether one of the server's own writes was refused by the API, for instance by a policy or webhook.
// That must not prevent the server from starting, or the administrator could not repair the configuration.
func Refused(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && ctx.Err() == nil && !apierrors.IsTimeout(err) // a timeout comes from the store
}
