package extension

import (
	"context"
	"errors"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// adopt writes the state of an external storage to the log: obj replaces the object that the call names; nil means that
// it is gone. It writes nothing if the log is up to date.
func adopt(ctx context.Context, h *part.Host, c *verb.Call, obj object.Object) error {
	if _, err := h.View.Fresh(ctx); err != nil {
		return err
	}
	e := h.View.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
	if obj != nil {
		if err := complete(h, c, obj, e); err != nil {
			return err
		}
	}
	return h.Verbs.Adopt(ctx, c, e, obj)
}

var errNotOfKind = errors.New("not an object of the kind")

// defaultMetadata are the metadata that the log keeps if a storage does not set them.
var defaultMetadata = []string{"uid", "creationTimestamp", "generation", "managedFields"}

// complete adds the metadata common to all objects to an object of a storage. e is the log's state of it, or nil.
func complete(h *part.Host, c *verb.Call, obj object.Object, e *watchcache.Entry) error {
	meta := object.Meta(obj)
	delete(meta, "resourceVersion")
	if e != nil {
		was, err := h.Verbs.Object(c, e)
		if err != nil {
			return err
		}
		for _, key := range defaultMetadata {
			if v := object.Meta(was)[key]; meta[key] == nil && v != nil {
				meta[key] = v
			}
		}
	}
	for key, v := range map[string]any{
		"uid": h.Verbs.NewUID(), "creationTimestamp": h.Now().UTC().Format("2006-01-02T15:04:05Z"),
		"generation": int64(1),
	} {
		if meta[key] == nil || meta[key] == "" {
			meta[key] = v
		}
	}
	if _, err := h.Verbs.New(c, obj); err != nil {
		return fmt.Errorf("%s %s: %w: %w", c.Resource.Qualified(), keyOf(c.Namespace, c.Name), errNotOfKind, err)
	}
	return nil
}
