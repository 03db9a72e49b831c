package verb

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/api/secrecy"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Conceal returns a copy of the call that hides the fields that the user may not read: reads mask these fields, writes
// keep masked values, and the audit log masks them for all users. A call in process shows nothing to a client and does
// not need Conceal.
func (v *Verbs) Conceal(ctx context.Context, c *Call) (*Call, error) {
	hidden, err := secrecy.Of(ctx, c.Version, v.admission.authorizer, c.User, request.Info{
		Verb: c.Verb, Group: c.Resource.Group, Version: c.Version.Name, Namespace: c.Namespace,
		Resource: c.Resource.Plural, Name: c.Name,
	})
	return c.Masking(hidden), err
}

// unmask restores the stored values of masked fields in the client's object.
func unmask(c *Call, obj, old object.Object) error {
	return c.Secrecy.Unmask(obj, old, secrecy.Part{
		Kind: c.Kind().GroupKind(), Name: c.Name, Split: c.Version.Status, Status: c.Subresource == "status",
	})
}
