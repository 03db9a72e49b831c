package verb

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Get returns the entry of the named object in the call's version, not older than resourceVersion says.
func (r *Reader) Get(ctx context.Context, c *Call, resourceVersion string) (*watchcache.Entry, error) {
	if c.Resource.Virtual {
		found, err := r.unstored(ctx, c, c.Name)
		if err != nil {
			return nil, err
		}
		return found[0], nil
	}
	if _, err := r.catchUp(ctx, resourceVersion); err != nil {
		return nil, err
	}
	e, err := r.seen(c)
	if err != nil {
		return nil, err
	}
	return r.inVersion(ctx, c, e)
}

// parseRevision reads a resourceVersion parameter. The error is the one that kube makes a 500 of for a get and a
// watch, and a 400 for a list.
func parseRevision(text string) (int64, error) {
	v, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	}
	return int64(v), nil
}
