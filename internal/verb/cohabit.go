package verb

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// showCohabiting lets admission see the objects of a write also as objects of the twin resource: events of one group as
// events of the other.
func (ad *admission) showCohabiting(c *Call, a *admit.Attributes) {
	twin := c.Snapshot.Resource(c.Resource.Cohabits.Group, c.Resource.Cohabits.Resource)
	alias, main := c.Resource, twin
	if !alias.Secondary {
		alias, main = twin, c.Resource
	}
	as := func(v *catalog.Version) *catalog.Version {
		if v == main.Storage {
			return alias.Storage // the alias's own storage version
		}
		return v
	}
	other := twin.Versions[0]
	a.Cohabits, a.CohabitsVersion = twin, other
	a.Convert = func(ctx context.Context, obj object.Object, from, to *catalog.Version) (object.Object, error) {
		return ad.Converter().Convert(ctx, alias, as(from), as(to), obj)
	}
	own := a.Normalize
	a.Normalize = func(v *catalog.Version, obj object.Object) error {
		if v != other {
			return own(v, obj)
		}
		_, err := normalize(c.Of(twin).In(other), obj)
		return err
	}
}
