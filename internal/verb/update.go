package verb

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/api/secrecy"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// Replace is a PUT: it replaces the named object by the object in body. For kinds with CreateOnUpdate it creates a
// missing object.
func (v *Verbs) Replace(ctx context.Context, c *Call, body decode.Body, o metav1.UpdateOptions) (*Result, error) {
	validation := fieldValidation(o.FieldValidation)
	obj, documents, err := v.decoder.decode(ctx, c, body, validation)
	if err != nil {
		return nil, err
	}
	recordSent(c, obj)
	if err := matches(c, obj); err != nil { // before looking up the object
		return nil, err
	}
	w := v.begin(c, o.DryRun)
	w.documents = documents
	res, err := w.update(ctx, o, func(object.Object) (object.Object, error) {
		next := obj
		if obj = nil; next == nil { // a retry needs the original object; its problems have been reported
			next, _, err := v.decoder.decode(context.WithoutCancel(ctx), c, body, metav1.FieldValidationIgnore)
			return next, err
		}
		return next, nil
	})
	if !apierrors.IsNotFound(err) || c.Subresource != "" || c.Strategy() == nil || !c.Strategy().CreateOnUpdate {
		return res, err
	}
	missing := v.begin(c, o.DryRun)
	if obj, missing.documents, err = v.decoder.decode(ctx, c, body, validation); err != nil {
		return nil, err
	}
	return missing.createByUpdate(ctx, obj, o)
}

// createByUpdate creates the object of a PUT, for kinds with CreateOnUpdate.
func (w *write) createByUpdate(ctx context.Context, obj object.Object, o metav1.UpdateOptions) (*Result, error) {
	if err := objectmeta.MatchName(obj, w.call.Name); err != nil {
		return nil, err
	}
	if err := w.checkUID(w.call, obj, ""); err != nil {
		return nil, err
	}
	delete(object.Meta(obj), "resourceVersion")
	res, err := w.create(ctx, obj,
		metav1.CreateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation})
	if err == nil {
		res.Created = true
	}
	return res, err
}

// Update replaces the named object by the result of change. change receives the current object in the call's version
// and owns it. If another write intervenes and the result does not require a resourceVersion, Update calls change again
// with the newer object.
func (v *Verbs) Update(
	ctx context.Context, c *Call, o metav1.UpdateOptions, change func(current object.Object) (object.Object, error),
) (*Result, error) {
	return v.begin(c, o.DryRun).update(ctx, o, change)
}

func (w *write) update(
	ctx context.Context, o metav1.UpdateOptions, change func(current object.Object) (object.Object, error),
) (*Result, error) {
	c := w.call // w.call may change to the stored version: see Call.Metadata
	own, err := w.tracker.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	return w.edit(ctx, o, func(e *watchcache.Entry, old object.Object) (object.Object, error) {
		obj, err := change(runtime.DeepCopyJSON(old))
		if err != nil {
			return nil, err
		}
		if err := matches(c, obj); err != nil {
			return nil, err
		}
		if err := w.checkUID(c, obj, e.UID); err != nil {
			return nil, err
		}
		if err := unmask(c, obj, old); err != nil {
			return nil, err
		}
		objectmeta.DropDuplicateOwners(obj, func(text string) { request.Warn(ctx, text) })
		w.tracker.track(own, old, obj, manager(c, o.FieldManager))
		return obj, nil
	})
}

// Edit is the loop of every write to an existing object: read, change, validate, compare and swap. edit receives the
// current entry and its decoded object, which it must not change, and returns the new object with its final
// managedFields.
func (v *Verbs) Edit(ctx context.Context, c *Call, o metav1.UpdateOptions, edit editor) (*Result, error) {
	return v.begin(c, o.DryRun).edit(ctx, o, edit)
}

// editor returns the object that replaces old, the object of entry e.
type editor = func(e *watchcache.Entry, old object.Object) (object.Object, error)

// replace is edit until it needs a proof (errUnproven).
func (w *write) replace(ctx context.Context, o metav1.UpdateOptions, edit editor) (*Result, error) {
	defer w.sequences.lock(w.call)()
	for {
		if err := w.find(ctx); err != nil {
			return nil, err
		}
		if !w.charged { // a retry takes the memory of the former round
			if err := decode.Hold(ctx, w.entry); err != nil {
				return nil, err
			}
			w.charged = true
		}
		w.refresh()
		shown, err := w.decodeOld(ctx, w.call.Metadata)
		if err != nil {
			return nil, err
		}
		if w.obj, err = edit(shown, w.old); err != nil {
			return nil, err
		}
		if err := w.admitUpdate(ctx, &o); err != nil {
			return nil, err
		}
		if err := w.prepareUpdate(ctx); err != nil {
			return nil, err
		}
		if err := w.validateUpdate(ctx); err != nil {
			return nil, err
		}
		res, err := w.commitUpdate(ctx)
		if retry(err) {
			continue // a client that requires a revision now gets the conflict from checkRevision
		}
		return res, err
	}
}

// admitUpdate runs the mutating plugins and the guard, and checks the resourceVersion.
func (w *write) admitUpdate(ctx context.Context, o *metav1.UpdateOptions) error {
	w.attributes = w.attributesOf(ctx, admit.Update, w.call.Name, o)
	if !w.scale && !w.call.Admitted { // otherwise edit or the caller has run admission
		w.attributes.Object, w.attributes.Old = w.obj, w.old
		if err := w.mutate(ctx, w.attributes); err != nil {
			return err
		}
		w.obj = w.attributes.Object
	}
	if err := w.guard(ctx, w.call, w.obj, w.old); err != nil {
		return err
	}
	return checkRevision(w.call, w.obj, w.entry)
}

// commitUpdate runs the validating plugins on a complete and valid update, and commits it.
func (w *write) commitUpdate(ctx context.Context) (*Result, error) {
	defer w.attributes.EndSequence()
	if !w.call.Admitted {
		if err := w.admitValid(ctx); err != nil {
			return nil, err
		}
	}
	canonicalize(w.call, w.obj)
	if w.renewed {
		apply.KeepTimes(w.old, w.obj) // again, now that both have the stored form
	}
	w.follow()
	conclude, err := w.proven(ctx)
	if err != nil {
		return nil, err
	}
	res, err := w.swap(ctx)
	conclude(err)
	return res, storeError(err, w.call, w.call.Name)
}

// checkUID compares the uid in a client's object with the stored uid, "" if there is none. A uid in a patch is an
// ordinary change, which validation refuses.
func (v *Verbs) checkUID(c *Call, sent object.Object, stored string) error {
	uid := object.String(object.Meta(sent), "uid")
	if uid == "" || uid == stored {
		return nil
	}
	return apierrors.NewConflict(c.GroupResource(), c.Name,
		fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: "+
			"Precondition failed: UID in precondition: %v, UID in object meta: %v",
			v.store.Path(c.Key(c.Name)), uid, stored))
}

// checkRevision compares the resourceVersion in a new object with the current revision.
func checkRevision(c *Call, obj object.Object, e *watchcache.Entry) error {
	meta := object.Meta(obj)
	text := object.String(meta, "resourceVersion")
	if text == "" || text == "0" {
		if c.Strategy() != nil && c.Strategy().UnconditionalUpdate {
			meta["resourceVersion"] = strconv.FormatInt(e.Revision, 10)
			return nil
		}
		return invalid.New(schema.GroupKind{Group: c.Resource.Group, Kind: c.Resource.Plural}, c.Name,
			field.ErrorList{
				field.Invalid(field.NewPath("metadata").Child("resourceVersion"), uint64(0),
					"must be specified for an update"),
			})
	}
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err // a 500, as in Kubernetes
	}
	if int64(revision) != e.Revision {
		return conflict(c, c.Name)
	}
	return nil
}

// prepareUpdate carries over fields that a client cannot change, and assigns exclusive properties.
func (w *write) prepareUpdate(ctx context.Context) error {
	c, obj, old := w.call, w.obj, w.old
	meta, oldMeta := object.Meta(obj), object.Meta(old)
	object.SetOrDelete(meta, "generation", oldMeta["generation"], oldMeta["generation"] != nil)
	switch {
	case c.Strategy() != nil && c.Strategy().PrepareUpdate != nil:
		c.Strategy().PrepareUpdate(obj, old, c.Subresource, w.Env(c))
		meta = object.Meta(obj)
	case c.Subresource == "status":
		keepOnlyStatus(obj, old)
		meta = object.Meta(obj)
	default:
		keepStatus(c, obj, old)
		if !c.Resource.NoGeneration && !sameBeyondMeta(obj, old) {
			generation, _ := oldMeta["generation"].(int64)
			meta["generation"] = generation + 1
		}
	}
	for _, key := range []string{"uid", "creationTimestamp", "deletionTimestamp"} {
		if v := oldMeta[key]; v != nil && (key != "uid" || object.String(meta, key) == "") {
			meta[key] = v
		}
	}
	if meta["deletionGracePeriodSeconds"] == nil && oldMeta["deletionGracePeriodSeconds"] != nil {
		meta["deletionGracePeriodSeconds"] = oldMeta["deletionGracePeriodSeconds"]
	}
	return w.allocations.assign(ctx, c, obj, old, w.dryRun)
}

// validateUpdate validates the update and warns the client of unwise values.
func (w *write) validateUpdate(ctx context.Context) error {
	errs, err := validateUpdate(ctx, w.call, w.obj, w.old)
	if err != nil {
		return err
	}
	errs = slices.Concat(w.validateIn(ctx, w.call, w.obj, w.old), w.limit(ctx, w.call, w.obj, w.old), errs)
	if len(errs) > 0 {
		name := object.String(object.Meta(w.obj), "name")
		return invalid.New(kindOf(w.call, w.obj), name, secrecy.Redact(w.call.Version, errs))
	}
	warnUnwise(ctx, w.call, w.obj, w.old)
	w.renewed = apply.KeepTimes(w.old, w.obj) // if nothing else changes, the times in managedFields stay, too
	return nil
}

// keepStatus makes an update of the main resource ignore status where /status exists.
func keepStatus(c *Call, obj, old object.Object) {
	if !c.Version.Status {
		return
	}
	status, had := old["status"]
	object.SetOrDelete(obj, "status", status, had)
}

// keepOnlyStatus makes an update of /status ignore everything except status and its managed fields.
func keepOnlyStatus(obj, old object.Object) {
	status, has := obj["status"]
	managed, hasManaged := object.Meta(obj)["managedFields"]
	for key := range obj {
		delete(obj, key)
	}
	for key, v := range old {
		obj[key] = v
	}
	meta := object.Object{}
	for key, v := range object.Meta(old) {
		meta[key] = v
	}
	obj["metadata"] = meta
	object.SetOrDelete(meta, "managedFields", managed, hasManaged)
	object.SetOrDelete(obj, "status", status, has)
}

func sameBeyondMeta(a, b object.Object) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		if key == "metadata" {
			continue
		}
		w, ok := b[key]
		if !ok || !codec.Equal(v, w) {
			return false
		}
	}
	return true
}
