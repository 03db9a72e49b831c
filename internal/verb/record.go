package verb

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/object"
)

// recordSent records the client's object in the audit log.
func (c *Call) recordSent(obj object.Object) {
	if c.Audit != nil {
		c.Audit.RequestObject(obj)
	}
}

// recordTyped is recordSent for an object decoded into a Go value; the record includes fields that the type always
// writes.
func (c *Call) recordTyped(sent any, kind schema.GroupVersionKind) {
	if c.Audit == nil {
		return
	}
	if obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sent); err == nil {
		obj["apiVersion"], obj["kind"] = kind.GroupVersion().String(), kind.Kind
		c.Audit.RequestObject(obj)
	}
}

// recordChange records in the audit log how a write changed the object in ch.entry; now is nil after a deletion. It
// decodes the old object again, because the write may have changed its copy.
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
		return // the write is done; the log has the request without the change
	}
	if old, err := w.Object(c, shown); err == nil {
		c.Audit.Changed(old, now)
	}
}
