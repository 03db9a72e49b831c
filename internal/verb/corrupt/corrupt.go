// Package corrupt words what clients are told of stored objects that cannot be read: because they cannot be decrypted,
// or are no objects. There are two ways of it, as in Kubernetes: with the permission to delete such objects (KEP-3926,
// feature gate AllowUnsafeMalformedObjectDeletion) errors name them, without it they are those of the store.
//
// It is functions of values.
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
	// Verb is the permission that the deletion of such an object needs.
	Verb = "unsafe-delete-ignore-read-errors"
	// Option is the delete option that asks for it.
	Option = "ignoreStoreReadErrorWithClusterBreakingPotential"
	// Listed is how many objects the error of a list names, as in Kubernetes.
	Listed = 100
)

// Texts words errors.
type Texts struct {
	// Named is true if such objects can be deleted.
	Named bool
	// Path returns where a key is in etcd.
	Path func(key string) string
}

// Asked reports whether a deletion is about such an object.
func Asked(o *metav1.DeleteOptions) bool {
	ignore := o.IgnoreStoreReadErrorWithClusterBreakingPotential
	return ignore != nil && *ignore
}

// describe says of an entry what cannot be done with its value.
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

// Read is the answer to a read of an entry that cannot be read; nil if it can, or is nil. Kubernetes' errors about one
// object name its key without the prefix of all keys; those of lists have it.
func (t Texts) Read(e *watchcache.Entry) error {
	switch {
	case e == nil || e.Unreadable() == nil:
		return nil
	case t.Named:
		return apierrors.NewInternalError(storageError("/"+e.Unreadable().Key, e))
	}
	return apierrors.NewInternalError(e.Unreadable().Err)
}

// For is Read for a request with a verb: those that change the object say nothing of its key, as in Kubernetes.
func (t Texts) For(verb string, e *watchcache.Entry) error {
	err := t.Read(e)
	if err != nil && t.Named && (verb == "update" || verb == "patch") {
		return apierrors.NewInternalError(describe(e))
	}
	return err
}

// List is the answer to a list of a resource of which entries cannot be read. There is one at least.
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
		if i == Listed {
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

// Deleted is what a watch says of the deletion of such an object.
func Deleted(e *watchcache.Entry) error {
	return readError(metav1.Status{
		Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", describe(e)),
	})
}

func readError(s metav1.Status) error {
	s.Status, s.Code, s.Reason = metav1.StatusFailure, http.StatusInternalServerError, metav1.StatusReasonStoreReadError
	return &apierrors.StatusError{ErrStatus: s}
}

// NotCorrupt refuses the option for an object that can be read, or is not there.
func NotCorrupt(gr schema.GroupResource, name string) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: gr.Group, Kind: gr.Resource}, name, field.ErrorList{
		field.Invalid(field.NewPath(Option), true,
			"is exclusively used to delete corrupt object(s), try again by removing this option"),
	})
}

// NotInCollections are the errors of the option in the deletion of a collection.
func NotInCollections() field.ErrorList {
	return field.ErrorList{
		field.Invalid(field.NewPath(Option), true,
			"is not allowed with DELETECOLLECTION, try again after removing the option"),
	}
}

// Forbidden refuses the option to a user. A subresource has none, err is why the authorizer did not answer, reason what
// it said.
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
