package verb

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// toStorage encodes an object of the call's version for the store: in the storage version, without a revision.
func (en *encoder) toStorage(ctx context.Context, c *Call, obj object.Object) (codec.Stored, error) {
	out, err := en.Converter().Convert(ctx, c.Resource, c.Version, c.Storage(), obj)
	if err != nil {
		return codec.Stored{}, err
	}
	return codec.EncodeStored(out), nil
}

// encoder produces the stored bytes of objects.
type encoder struct {
	*Reader
	store   *store.Store
	storing *convert.Storing
	cipher  convert.Cipher // nil if nothing is encrypted
}

// persisted returns the stored bytes for an object's JSON under the call's name.
func (en *encoder) persisted(ctx context.Context, c *Call, name string, stored codec.Stored) ([]byte, error) {
	raw, _ := en.storing.Encode(c.Resource, stored.JSON, stored.Documents...)
	if en.cipher == nil {
		return raw, nil
	}
	raw, err := en.cipher.Encrypt(ctx, en.covered(c), c.Key(name), raw)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return raw, nil
}

// covered returns the prefix that selects the encryption of the call's objects.
func (en *encoder) covered(c *Call) string {
	if c.Resource.Sensitive && !en.cipher.Covers(c.Resource.Prefix) {
		return en.cipher.Instead(c.Resource.Prefix)
	}
	return c.Resource.Prefix
}

// stale reports whether an unchanged object must be written anyway, because its stored value would now be encoded or
// encrypted differently. The encryption shows only in the store's value.
func (en *encoder) stale(ctx context.Context, c *Call, e *watchcache.Entry) (bool, error) {
	if en.storing.Stale(c.Resource, e.Encoding(), e.JSON) {
		return true, nil
	}
	if en.cipher == nil {
		return false, nil
	}
	prefix := en.covered(c)
	if !en.cipher.Covers(prefix) {
		return false, nil
	}
	r, err := en.store.Get(ctx, c.Key(e.Name))
	switch {
	case err != nil:
		return false, err
	case r.Revision != e.Revision:
		return false, store.ErrConflict
	}
	return en.cipher.Stale(prefix, r.Key, r.Value), nil
}

// canonicalize brings a validated object into its stored form.
func canonicalize(c *Call, obj object.Object) {
	delete(object.Meta(obj), "selfLink")
	if rules := c.Strategy(); rules != nil && rules.Store != nil {
		rules.Store(obj)
	}
}

// ttl returns the lifetime of the object after each write; 0 means no limit.
func ttl(c *Call) time.Duration {
	if c.Resource.Strategy == nil {
		return 0
	}
	return c.Resource.Strategy.TTL
}
