package verb

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/object"
)

// recordSent notes for the audit log the object that the client has sent.
func (c *Call) recordSent(obj object.Object) {
	if c.Audit != nil {
		c.Audit.RequestObject(obj)
	}
}

// recordTyped is recordSent for an object that has been read into a Go value: with the fields that its type always has.
func (c *Call) recordTyped(sent any, kind schema.GroupVersionKind) {
	if c.Audit == nil {
		return
	}
	if obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sent); err == nil {
		obj["apiVersion"], obj["kind"] = kind.GroupVersion().String(), kind.Kind
		c.Audit.RequestObject(obj)
	}
}

// recordChange notes for the audit log what a write has made of the object in ch.entry; now is nil if it is gone. The
// old object is decoded once more: a write may have changed the one that it has worked with.
func (w *writer) recordChange(ctx context.Context, c *Call, ch change, now object.Object) {
	if c.Audit == nil || !c.Audit.Changes() {
		return
	}
	if ch.entry == nil {
		c.Audit.Changed(nil, now)
		return
	}
	shown, err := w.inVersion(ctx, c, ch.entry)
	if err != nil {
		return // the write is done; the log has the request without its change
	}
	if old, err := w.Object(c, shown); err == nil {
		c.Audit.Changed(old, now)
	}
}
