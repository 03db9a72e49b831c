package verb

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/object"
)

// recordSent records the client's object in the audit log.
func recordSent(c *Call, obj object.Object) {
	if c.Audit != nil {
		c.Audit.RequestObject(obj)
	}
}

// recordTyped is recordSent for an object decoded into a Go value; the record includes fields that the type always
// writes.
func recordTyped(c *Call, sent any, kind schema.GroupVersionKind) {
	if c.Audit == nil {
		return
	}
	if obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sent); err == nil {
		obj["apiVersion"], obj["kind"] = kind.GroupVersion().String(), kind.Kind
		c.Audit.RequestObject(obj)
	}
}

// recordChange records in the audit log how the write changed the stored object; now is nil after a deletion. It
// decodes the old object again, because the write may have changed its copy.
func (w *write) recordChange(ctx context.Context, now object.Object) {
	log := w.call.Audit
	if log == nil || !log.Changes() {
		return
	}
	if w.entry == nil {
		log.Changed(nil, now)
		return
	}
	shown, err := w.InVersion(ctx, w.call, w.entry)
	if err != nil {
		return // the write is done; the log has the request without the change
	}
	if old, err := w.Object(w.call, shown); err == nil {
		log.Changed(old, now)
	}
}
