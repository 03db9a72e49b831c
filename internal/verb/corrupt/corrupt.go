// Package corrupt words the errors about unreadable stored objects, which cannot be decrypted or decoded. As in
// Kubernetes there are two forms: with the feature gate AllowUnsafeMalformedObjectDeletion (KEP-3926) errors name the
// objects, otherwise they are the errors of the store.
//
// The package consists of pure functions.
package corrupt

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

const (
	// Verb is the permission for deleting an unreadable object.
	Verb = "unsafe-delete-ignore-read-errors"
	// Option is the delete option that requests the deletion of an unreadable object.
	Option = "ignoreStoreReadErrorWithClusterBreakingPotential"
	// MaxListed is the number of objects that the error of a list names, as in Kubernetes.
	MaxListed = 100
)

// Texts words errors.
type Texts struct {
	// Named is true if unreadable objects can be deleted.
	Named bool
	// Path returns the path of a key in etcd.
	Path func(key string) string
}

// Requested reports whether a deletion requests the removal of an unreadable object.
func Requested(o *metav1.DeleteOptions) bool {
	ignore := o.IgnoreStoreReadErrorWithClusterBreakingPotential
	return ignore != nil && *ignore
}

// describe returns the reason why the entry's value is unreadable.
func describe(e *watchcache.Entry) error {
	why := e.Unreadable()
	if why.Undecodable {
		return fmt.Errorf("object not decodable revision=%d: %w", e.Revision, why.Err)
	}
	return fmt.Errorf("data from the storage is not transformable revision=0: %w", why.Err)
}

func storageError(key string, e *watchcache.Entry) error {
	return fmt.Errorf("StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %w", key,
		describe(e))
}

// Read returns the error for reading an unreadable entry; nil if e is readable or nil. Kubernetes' errors about one
// object name its key without the prefix of all keys; errors of lists include the prefix.
func (t Texts) Read(e *watchcache.Entry) error {
	switch {
	case e == nil || e.Unreadable() == nil:
		return nil
	case t.Named:
		return apierrors.NewInternalError(storageError("/"+e.Unreadable().Key, e))
	}
	return apierrors.NewInternalError(e.Unreadable().Err)
}

// For is Read for a request with a verb: errors of updates and patches omit the key, as in Kubernetes.
func (t Texts) For(verb string, e *watchcache.Entry) error {
	err := t.Read(e)
	if err != nil && t.Named && (verb == "update" || verb == "patch") {
		return apierrors.NewInternalError(describe(e))
	}
	return err
}

// List returns the error for a list of a resource with unreadable entries. entries is not empty.
func (t Texts) List(gr schema.GroupResource, entries []*watchcache.Entry) error {
	if !t.Named {
		why := entries[0].Unreadable()
		if why.Undecodable {
			return apierrors.NewInternalError(why.Err)
		}
		return apierrors.NewInternalError(fmt.Errorf("unable to transform key %q: %w", t.Path(why.Key), why.Err))
	}
	var causes []metav1.StatusCause
	for i, e := range entries {
		if i == MaxListed {
			causes = append(causes, metav1.StatusCause{
				Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated",
			})
			break
		}
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeUnexpectedServerResponse, Field: t.Path(e.Unreadable().Key),
			Message: storageError(t.Path(e.Unreadable().Key), e).Error(),
		})
	}
	return readError(metav1.Status{
		Message: fmt.Sprintf("failed to read one or more %s from the storage", gr),
		Details: &metav1.StatusDetails{Group: gr.Group, Kind: gr.Resource, Name: "list", Causes: causes},
	})
}

// Deleted returns the error in a watch for the deletion of an unreadable object.
func Deleted(e *watchcache.Entry) error {
	return readError(metav1.Status{
		Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", describe(e)),
	})
}

func readError(s metav1.Status) error {
	s.Status, s.Code, s.Reason = metav1.StatusFailure, http.StatusInternalServerError, metav1.StatusReasonStoreReadError
	return &apierrors.StatusError{ErrStatus: s}
}

// Readable refuses the deletion of a readable object with the option. path is the path of its key in etcd.
func Readable(gr schema.GroupResource, name, path string) error {
	return apierrors.NewConflict(gr, name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, "+
		"ResourceVersion: 0, AdditionalErrorMsg: "+
		"unsafe deletion is not allowed because the object is decodable from storage", path))
}

// NotInCollections returns the errors of the option in the deletion of a collection.
func NotInCollections() field.ErrorList {
	return field.ErrorList{
		field.Invalid(field.NewPath(Option), true,
			"is not allowed with DELETECOLLECTION, try again after removing the option"),
	}
}

// Forbidden refuses the option to a user. The subresource, if any, decides the text, then err from the authorizer, then
// its reason.
func Forbidden(gr schema.GroupResource, name, subresource, reason string, err error) error {
	why := fmt.Errorf("not permitted to do %q, reason: %s", Verb, reason)
	switch {
	case subresource != "":
		why = errors.New(Option + " delete option is not allowed on a subresource or non-resource request")
	case err != nil:
		why = fmt.Errorf("error while checking permission for %q, %w", Verb, err)
	}
	return apierrors.NewForbidden(gr, name, why)
}
