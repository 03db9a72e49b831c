package corrupt

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestForbidden has the three reasons for which a user is refused.
func TestForbidden(t *testing.T) {
	t.Parallel()
	gr := schema.GroupResource{Resource: "secrets"}
	for want, err := range map[string]error{
		`secrets "a" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: no role`: Forbidden(
			gr, "a", "", "no role", nil),
		`secrets "a" is forbidden: error while checking permission for "unsafe-delete-ignore-read-errors", late`: Forbidden(
			gr, "a", "", "", errors.New("late")),
		`secrets "a" is forbidden: ` + Option +
			` delete option is not allowed on a subresource or non-resource request`: Forbidden(gr, "a", "status", "", nil),
	} {
		if !apierrors.IsForbidden(err) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	const readable = `Operation cannot be fulfilled on secrets "a": StorageError: invalid object, Code: 4, ` +
		"Key: /registry/secrets/a, ResourceVersion: 0, AdditionalErrorMsg: " +
		"unsafe deletion is not allowed because the object is decodable from storage"
	if err := Readable(gr, "a", "/registry/secrets/a"); !apierrors.IsConflict(err) || err.Error() != readable {
		t.Errorf("%v, want %s", err, readable)
	}
}
