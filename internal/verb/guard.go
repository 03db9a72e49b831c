package verb

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Guard decides whether the user of a write may give an object what it says, as the escalation checks of roles do. It
// is asked when admission has changed the object, and before anything else is found wrong with it. old is nil if there
// is no such object yet; neither is changed. The error is what the client gets.
type Guard func(ctx context.Context, c *Call, obj, old object.Object) error

// guard asks the guard of the call's resource, if it has one.
func (v *Verbs) guard(ctx context.Context, c *Call, obj, old object.Object) error {
	if len(v.guards) == 0 || c.Resource.Custom() {
		return nil
	}
	if ask := v.guards[c.Target()]; ask != nil {
		return ask(ctx, c, obj, old)
	}
	return nil
}

// Limit returns what the user of an update may not say in an object, for the answer that says what else is wrong with
// it. Neither object is changed.
type Limit func(ctx context.Context, c *Call, obj, old object.Object) field.ErrorList

// limit asks the limit of the call's resource, if it has one.
func (v *Verbs) limit(ctx context.Context, c *Call, obj, old object.Object) field.ErrorList {
	if len(v.limits) == 0 || c.Resource.Custom() || v.limits[c.Target()] == nil {
		return nil
	}
	return v.limits[c.Target()](ctx, c, obj, old)
}
