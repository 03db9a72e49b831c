package verb

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Guard decides whether the user may write the object's content, like the escalation checks of roles. It runs after
// mutating admission and before all validation. old is nil if the object is new. Guard changes neither object. The
// client gets the error.
type Guard func(ctx context.Context, c *Call, obj, old object.Object) error

// guard calls the guard of the call's resource, if any.
func (v *Verbs) guard(ctx context.Context, c *Call, obj, old object.Object) error {
	guards := v.guards
	if c.Resource.Custom() {
		guards = v.customGuards
	}
	if len(guards) == 0 {
		return nil
	}
	if ask := guards[c.Target()]; ask != nil {
		return ask(ctx, c, obj, old)
	}
	return nil
}

// Limit returns errors for changes in an update that the user may not make. They are reported together with the other
// validation errors. Limit changes neither object.
type Limit func(ctx context.Context, c *Call, obj, old object.Object) field.ErrorList

// limit calls the limit of the call's resource, if any.
func (v *Verbs) limit(ctx context.Context, c *Call, obj, old object.Object) field.ErrorList {
	if len(v.limits) == 0 || c.Resource.Custom() || v.limits[c.Target()] == nil {
		return nil
	}
	return v.limits[c.Target()](ctx, c, obj, old)
}
