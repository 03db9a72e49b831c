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
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// Replace is a PUT: it replaces the named object by the object in body. For kinds with CreateOnUpdate it creates a
// missing object.
func (v *Verbs) Replace(ctx context.Context, c *Call, body decode.Body, o metav1.UpdateOptions) (*Result, error) {
	validation := fieldValidation(o.FieldValidation)
	obj, err := v.decoder.decode(ctx, c, body, validation)
	if err != nil {
		return nil, err
	}
	c.recordSent(obj)
	if err := c.matches(obj); err != nil { // before looking up the object
		return nil, err
	}
	res, err := v.Update(ctx, c, o, func(object.Object) (object.Object, error) {
		next := obj
		if obj = nil; next == nil { // a retry needs the original object; its problems have been reported
			return v.decoder.decode(context.WithoutCancel(ctx), c, body, metav1.FieldValidationIgnore)
		}
		return next, nil
	})
	if !apierrors.IsNotFound(err) || c.Subresource != "" || c.Strategy() == nil || !c.Strategy().CreateOnUpdate {
		return res, err
	}
	if obj, err = v.decoder.decode(ctx, c, body, validation); err != nil {
		return nil, err
	}
	return v.createByUpdate(ctx, c, obj, o)
}

// createByUpdate creates the object of a PUT, for kinds with CreateOnUpdate.
func (v *Verbs) createByUpdate(
	ctx context.Context, c *Call, obj object.Object, o metav1.UpdateOptions,
) (*Result, error) {
	if err := objectmeta.MatchName(obj, c.Name); err != nil {
		return nil, err
	}
	if err := v.checkUID(c, obj, ""); err != nil {
		return nil, err
	}
	delete(object.Meta(obj), "resourceVersion")
	res, err := v.Create(ctx, c, obj,
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
	own, err := v.tracker.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	return v.Edit(ctx, c, o, func(e *watchcache.Entry, old object.Object) (object.Object, error) {
		obj, err := change(runtime.DeepCopyJSON(old)) // in old's version, which may differ from c's: see Call.Metadata
		if err != nil {
			return nil, err
		}
		if err := c.matches(obj); err != nil {
			return nil, err
		}
		if err := v.checkUID(c, obj, e.UID); err != nil {
			return nil, err
		}
		if err := c.unmask(obj, old); err != nil {
			return nil, err
		}
		objectmeta.DropDuplicateOwners(obj, func(text string) { request.Warn(ctx, text) })
		v.tracker.track(own, old, obj, c.manager(o.FieldManager))
		return obj, nil
	})
}

// Edit is the loop of every write to an existing object: read, change, validate, compare and swap. edit receives the
// current entry and its decoded object, which it must not change, and returns the new object with its final
// managedFields.
func (v *Verbs) Edit(
	ctx context.Context, c *Call, o metav1.UpdateOptions,
	edit func(e *watchcache.Entry, old object.Object) (object.Object, error),
) (*Result, error) {
	defer v.sequences.lock(c)()
	for held := false; ; held = true {
		e, err := v.Current(ctx, c)
		if err != nil {
			return nil, err
		}
		if !held { // a retry takes the memory of the former round
			if err := decode.Hold(ctx, e); err != nil {
				return nil, err
			}
		}
		v.sequences.refresh(c)
		if c.Metadata {
			c = v.inStoredVersion(c, e)
		}
		shown, err := v.inVersion(ctx, c, e)
		if err != nil {
			return nil, err
		}
		old, err := v.Object(c, shown)
		if err != nil {
			return nil, err
		}
		obj, err := edit(shown, old)
		if err != nil {
			return nil, err
		}
		a := v.admission.admissionAttributes(ctx, c, admit.Update, c.Name, &o)
		if c.through == "" && !c.admitted { // otherwise edit or the caller has run admission
			a.Object, a.Old = obj, old
			if err := v.admission.mutate(ctx, c, a); err != nil {
				return nil, err
			}
			obj = a.Object
		}
		if err := v.guard(ctx, c, obj, old); err != nil {
			return nil, err
		}
		if err := c.checkRevision(obj, e); err != nil {
			return nil, err
		}
		if err := v.prepareUpdate(ctx, c, obj, old, a.DryRun); err != nil {
			return nil, err
		}
		res, err := v.admitSwap(ctx, c, a, change{entry: e, old: old, obj: obj, name: c.Name})
		if retry(err) {
			continue // a client that requires a revision now gets the conflict from checkRevision
		}
		return res, err
	}
}

// admitSwap runs the validating plugins on a complete and valid update, and commits it.
func (v *Verbs) admitSwap(ctx context.Context, c *Call, a *admit.Attributes, ch change) (*Result, error) {
	defer a.EndSequence()
	if !c.admitted {
		if err := v.admission.validateUpdate(ctx, c, a, ch.obj, ch.old); err != nil {
			return nil, err
		}
	}
	c.canonicalize(ch.obj)
	c.dryRun = a.DryRun
	v.sequences.follow(c, a)
	ch.options = store.Options{TTL: c.ttl(), Sequence: c.sequence}
	res, err := v.writer.swap(ctx, c, ch)
	return res, storeError(err, c, c.Name)
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
			v.writer.store.Path(c.key(c.Name)), uid, stored))
}

// checkRevision compares the resourceVersion in a new object with the current revision.
func (c *Call) checkRevision(obj object.Object, e *watchcache.Entry) error {
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

// prepareUpdate carries over fields that a client cannot change, and validates the rest.
func (v *Verbs) prepareUpdate(ctx context.Context, c *Call, obj, old object.Object, dryRun bool) error {
	meta, oldMeta := object.Meta(obj), object.Meta(old)
	object.SetOrDelete(meta, "generation", oldMeta["generation"], oldMeta["generation"] != nil)
	switch {
	case c.Strategy() != nil && c.Strategy().PrepareUpdate != nil:
		c.Strategy().PrepareUpdate(obj, old, c.Subresource, v.Env(c))
		meta = object.Meta(obj)
	case c.Subresource == "status":
		keepOnlyStatus(obj, old)
		meta = object.Meta(obj)
	default:
		c.keepStatus(obj, old)
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
	if err := v.allocations.assign(ctx, c, obj, old, dryRun); err != nil {
		return err
	}
	errs, err := c.validateUpdate(ctx, obj, old)
	if err != nil {
		return err
	}
	errs = slices.Concat(v.validateIn(ctx, c, obj, old), v.limit(ctx, c, obj, old), errs)
	if len(errs) > 0 {
		return invalid.New(c.kindOf(obj), object.String(meta, "name"), secrecy.Redact(c.Version, errs))
	}
	c.warnings(ctx, obj, old)
	apply.KeepTimes(old, obj) // if nothing else changes, the times in managedFields stay, too
	return nil
}

// keepStatus makes an update of the main resource ignore status where /status exists.
func (c *Call) keepStatus(obj, old object.Object) {
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
