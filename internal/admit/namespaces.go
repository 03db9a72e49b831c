package admit

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Namespaces looks up the namespaces of writes, after all writes acknowledged before. Errors are NotFound if the
// namespace does not exist.
type Namespaces struct {
	View *watchcache.View
}

// Labels returns a namespace's labels, read only.
func (n Namespaces) Labels(ctx context.Context, name string) (labels.Set, error) {
	e, err := n.entry(ctx, name)
	if err != nil {
		return nil, err
	}
	return e.Labels, nil
}

// Object returns a namespace as decoded JSON.
func (n Namespaces) Object(ctx context.Context, name string) (Object, error) {
	e, err := n.entry(ctx, name)
	if err != nil {
		return nil, err
	}
	v, err := codec.DecodeJSON(e.JSON())
	obj, _ := v.(Object)
	return obj, err
}

func (n Namespaces) entry(ctx context.Context, name string) (*watchcache.Entry, error) {
	if _, err := n.View.Fresh(ctx); err != nil {
		return nil, err
	}
	if e := n.View.Collection("namespaces").Snapshot().Get("", name); e != nil {
		return e, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
}
