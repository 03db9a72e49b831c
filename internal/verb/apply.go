package verb

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/secrecy"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// Apply is server-side apply. The patch holds the fields that o.FieldManager wants, as YAML, JSON or, by its type,
// CBOR. Apply creates the object if it does not exist.
func (v *Verbs) Apply(
	ctx context.Context, c *Call, patch decode.Patch, o metav1.PatchOptions,
) (*Result, error) {
	w := v.begin(c, o.DryRun)
	w.apply = true
	for {
		res, err := w.edit(ctx, updateOptionsOf(o),
			func(e *watchcache.Entry, old object.Object) (object.Object, error) {
				obj, err := v.merge(ctx, c, old, patch, o)
				if err == nil && (e.IsConverted() || e.APIVersion != c.APIVersion()) {
					// A converted object may lack defaults, and obj shares its values. Kubernetes fills them in only if
					// the apply changes something.
					if sameButOwnership(obj, old) {
						return obj, matches(c, obj)
					}
					obj = runtime.DeepCopyJSON(obj)
				}
				return normalizeApplied(c, obj, err)
			})
		if !apierrors.IsNotFound(err) || c.Subresource != "" {
			return res, err
		}
		missing := v.begin(c, o.DryRun)
		missing.apply = true
		res, err = missing.applyNew(ctx, patch, o)
		if apierrors.IsAlreadyExists(err) || retry(err) {
			continue // another client created it first: apply to its object
		}
		return res, err
	}
}

// applyNew creates an object by apply.
func (w *write) applyNew(ctx context.Context, patch decode.Patch, o metav1.PatchOptions) (*Result, error) {
	if w.call.Resource.Terminating {
		return nil, terminating(w.call, w.call.Name)
	}
	defer w.sequences.lock(w.call)()
	w.refresh()
	c := w.call
	merged, err := w.merge(ctx, c, nil, patch, o)
	obj, err := normalizeApplied(c, merged, err)
	if err != nil {
		return nil, err
	}
	meta := object.Meta(obj)
	if uid := object.String(meta, "uid"); uid != "" {
		return nil,
			apierrors.NewConflict(c.GroupResource(), c.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	delete(meta, "resourceVersion") // Kubernetes ignores a resourceVersion here
	objectmeta.WipeSystemFields(meta)
	w.attributes = w.admission.attributes(ctx, c, admit.Create, c.Name,
		&metav1.CreateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation})
	w.attributes.Object = obj
	res, err := w.insert(ctx)
	if err == nil {
		res.Created = true
	}
	return res, err
}

// merge applies the patch to the live object (nil if there is none). The result shares live's values.
func (v *Verbs) merge(
	ctx context.Context, c *Call, live object.Object, patch decode.Patch, o metav1.PatchOptions,
) (object.Object, error) {
	own, err := v.tracker.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	validation := fieldValidation(o.FieldValidation)
	applied, repeated, err := patch.Applied(validation != metav1.FieldValidationIgnore)
	if err != nil {
		return nil, err
	}
	if err := c.Secrecy.Unmask(applied, live,
		secrecy.Part{Kind: c.Kind().GroupKind(), Name: c.Name, Applied: true}); err != nil {
		return nil, err
	}
	obj, err := own.Apply(live, applied, o.FieldManager, o.Force != nil && *o.Force, v.Now())
	if err != nil {
		return nil, err
	}
	if repeated != nil {
		if validation == metav1.FieldValidationStrict {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", repeated))
		}
		decode.Warn(ctx, []string{repeated.Error()})
	}
	return obj, nil
}

// sameButOwnership reports whether a and b differ only in metadata.managedFields.
func sameButOwnership(a, b object.Object) bool {
	metaA, metaB := maps.Clone(object.Meta(a)), maps.Clone(object.Meta(b))
	delete(metaA, "managedFields")
	delete(metaB, "managedFields")
	return sameBeyondMeta(a, b) && codec.Equal(metaA, metaB)
}

// normalizeApplied brings the result of merge into the form of a decoded object: defaults, and a name and a namespace
// that agree with the path. A custom object gets only defaults and normalized metadata, because merge has already
// refused fields unknown to the schema.
func normalizeApplied(c *Call, obj object.Object, err error) (object.Object, error) {
	if err != nil {
		return nil, err
	}
	if !c.Resource.Custom() {
		if _, err := normalize(c, obj); err != nil {
			if refused := refusedQuantity(c, obj, err); refused != nil {
				return nil, refused
			}
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return obj, matches(c, obj)
	}
	if _, err := objectmeta.Check(obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	sch, err := c.Version.Schema()
	if err != nil {
		return nil, err
	}
	if sch != nil {
		sch.NormalizeApplied(obj)
	}
	return obj, matches(c, obj)
}
