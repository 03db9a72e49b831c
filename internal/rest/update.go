package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func (s *Server) serveUpdate(w http.ResponseWriter, r *http.Request, c *Call) error {
	if c.Name == "" {
		return c.nameless()
	}
	media, err := c.negotiate(r)
	if err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	options, err := updateOptions(r)
	if err != nil {
		return err
	}
	contentType, validation := r.Header.Get("Content-Type"), fieldValidation(options.FieldValidation)
	obj, err := s.decode(r.Context(), c, body, contentType, validation)
	if err != nil {
		return err
	}
	if err := c.matches(obj); err != nil { // before anybody looks whether the object is there
		return err
	}
	res, err := s.Update(r.Context(), c, *options, func(Object) (Object, error) {
		next := obj
		if obj = nil; next == nil { // a retry needs the object as it came; what was wrong with it has been said
			return s.decode(context.WithoutCancel(r.Context()), c, body, contentType, metav1.FieldValidationIgnore)
		}
		return next, nil
	})
	if apierrors.IsNotFound(err) && c.Subresource == "" && c.strategy() != nil && c.strategy().CreateOnUpdate {
		if obj, err = s.decode(r.Context(), c, body, contentType, validation); err == nil {
			res, err = s.createByUpdate(r.Context(), c, obj, *options)
		}
	}
	if err != nil {
		return err
	}
	code := http.StatusOK
	if res.Created {
		code = http.StatusCreated
	}
	return s.writeObject(w, r, code, c, res, media)
}

// createByUpdate makes the object that a PUT describes, for the kinds that allow it.
func (s *Server) createByUpdate(ctx context.Context, c *Call, obj Object, o metav1.UpdateOptions) (*Result, error) {
	if err := matchName(obj, c); err != nil {
		return nil, err
	}
	if err := s.checkUID(c, obj, ""); err != nil {
		return nil, err
	}
	delete(object.Meta(obj), "resourceVersion")
	res, err := s.Create(ctx, c, obj,
		metav1.CreateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation})
	if err == nil {
		res.Created = true
	}
	return res, err
}

// Update replaces the named object by what change makes of it. change gets the current object in the call's version and
// owns it; it is called again with a newer one if another write came between and the result does not insist on a
// resourceVersion.
func (s *Server) Update(
	ctx context.Context, c *Call, o metav1.UpdateOptions, change func(current Object) (Object, error),
) (*Result, error) {
	own, err := s.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.replace(ctx, c, o, func(e *watchcache.Entry, old Object) (Object, error) {
		obj, err := change(runtime.DeepCopyJSON(old)) // in old's version, which need not be c's: see Call.Metadata
		if err != nil {
			return nil, err
		}
		if err := c.matches(obj); err != nil {
			return nil, err
		}
		if err := s.checkUID(c, obj, e.UID); err != nil {
			return nil, err
		}
		c.dropDuplicateOwners(obj, func(text string) { c.warn(ctx, text) })
		s.track(own, old, obj, c.manager(o.FieldManager))
		return obj, nil
	})
}

// replace is the loop of every write to an existing object: read, change, judge, compare and swap. change gets the
// current entry and the object decoded from it, which it must not alter, and returns the new object with managedFields.
func (s *Server) replace(
	ctx context.Context, c *Call, o metav1.UpdateOptions, change func(e *watchcache.Entry, old Object) (Object, error),
) (*Result, error) {
	defer s.lock(c)()
	for {
		e, err := s.current(ctx, c)
		if err != nil {
			return nil, err
		}
		s.refresh(c)
		if c.Metadata {
			c = s.inStoredVersion(c, e)
		}
		shown, err := s.inVersion(ctx, c, e)
		if err != nil {
			return nil, err
		}
		old, err := s.fromEntry(c, shown)
		if err != nil {
			return nil, err
		}
		obj, err := change(shown, old)
		if err != nil {
			return nil, err
		}
		a := s.admissionAttributes(ctx, c, admit.Update, c.Name, &o, isDryRun(o.DryRun))
		if c.through == "" && !c.admitted { // or change has asked
			a.Object, a.Old = obj, old
			if err := s.mutate(ctx, c, a); err != nil {
				return nil, err
			}
			obj = a.Object
		}
		if err := c.checkRevision(obj, e); err != nil {
			return nil, err
		}
		if err := s.prepareUpdate(ctx, c, obj, old, a.DryRun); err != nil {
			return nil, err
		}
		if !c.admitted {
			if err := s.judgeUpdate(ctx, c, a, obj, old); err != nil {
				return nil, err
			}
		}
		c.canonicalize(obj)
		c.dryRun = a.DryRun
		res, err := s.swap(ctx, c, e, old, obj, store.Options{TTL: c.ttl(), Sequence: c.sequence})
		if retry(err) {
			continue // whoever insists on a revision gets the conflict from checkRevision now
		}
		return res, storeError(err, c, c.Name)
	}
}

// updated tells whoever wants to know that obj has taken the place of old.
func (s *Server) updated(c *Call, old, obj Object) {
	if len(s.Updated) == 0 || c.Resource.Custom() {
		return
	}
	name := c.Resource.Qualified()
	if c.Subresource != "" {
		name += "/" + c.Subresource
	}
	if tell := s.Updated[name]; tell != nil {
		tell(old, obj)
	}
}

// swap writes obj over the entry of old, which it was made from: as an update, as nothing if the bytes are the same,
// or as the deletion that an emptied list of finalizers completes.
func (s *Server) swap(ctx context.Context, c *Call, e *watchcache.Entry, old, obj Object, o store.Options) (*Result,
	error) {
	if s.finished(c, obj) {
		if c.dryRun {
			return &Result{Object: obj, Deleted: true}, nil
		}
		revision, err := s.erase(ctx, c, old, e.Revision)
		if err != nil {
			return nil, err
		}
		if err := s.waitVisible(ctx, c, revision); err != nil {
			return nil, err
		}
		return &Result{Object: obj, Deleted: true}, nil
	}
	return s.write(ctx, c, e, old, obj, o)
}

// write writes obj over the entry of old, which it was made from, unless the bytes are the same.
func (s *Server) write(ctx context.Context, c *Call, e *watchcache.Entry, old, obj Object, o store.Options) (*Result,
	error) {
	res, err := s.writeWhole(ctx, c, e, old, obj, o)
	if errors.Is(err, store.ErrTooLarge) && c.untrack(obj) {
		return s.writeWhole(ctx, c, e, old, obj, o)
	}
	return res, err
}

func (s *Server) writeWhole(
	ctx context.Context, c *Call, e *watchcache.Entry, old, obj Object, o store.Options,
) (*Result, error) {
	stored, err := s.toStorage(ctx, c, obj)
	if err != nil {
		return nil, err
	}
	if c.dryRun {
		return dryResult(ctx, s.Convert, c, obj, stored)
	}
	if stored.Is(e.JSON(), e.Revision) {
		return s.result(ctx, c, obj, c.Name, stored, e.Revision), nil
	}
	var revision int64
	err = s.commitWithAllocations(ctx, c, old, obj, func(also []store.Change) (err error) {
		o.Also = also
		revision, err = s.Store.With(o).Update(ctx, c.key(c.Name), s.persisted(c, stored), e.Revision)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.updated(c, old, obj) // at once: clients that watch know of it already
	if err := s.waitVisible(ctx, c, revision); err != nil {
		return nil, err
	}
	return s.result(ctx, c, obj, c.Name, stored, revision), nil
}

// finished tells whether an object that is being deleted has nothing left to wait for.
func (s *Server) finished(c *Call, obj Object) bool {
	meta := object.Meta(obj)
	if object.String(meta, "deletionTimestamp") == "" || len(object.Finalizers(obj)) > 0 {
		return false
	}
	if grace, ok := meta["deletionGracePeriodSeconds"].(int64); ok && grace > 0 {
		return false
	}
	rules := c.strategy()
	return rules == nil || rules.PrepareDelete == nil || !rules.PrepareDelete(obj, s.env(c))
}

// checkUID compares the uid that a client sends in a whole object with that of the stored one, "" if there is none. In
// a patch it is a change like any other, which validation refuses.
func (s *Server) checkUID(c *Call, sent Object, stored string) error {
	uid := object.String(object.Meta(sent), "uid")
	if uid == "" || uid == stored {
		return nil
	}
	return apierrors.NewConflict(c.groupResource(), c.Name,
		fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: "+
			"Precondition failed: UID in precondition: %v, UID in object meta: %v", s.Store.Path(c.key(c.Name)), uid,
			stored))
}

// checkRevision compares the resourceVersion that a new object carries with the current one's.
func (c *Call) checkRevision(obj Object, e *watchcache.Entry) error {
	meta := object.Meta(obj)
	text := object.String(meta, "resourceVersion")
	if text == "" || text == "0" {
		if c.strategy() != nil && c.strategy().UnconditionalUpdate {
			meta["resourceVersion"] = strconv.FormatInt(e.Revision, 10)
			return nil
		}
		return apierrors.NewInvalid(schema.GroupKind{Group: c.Resource.Group, Kind: c.Resource.Plural}, c.Name,
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

// prepareUpdate carries over what a client cannot change, and validates the rest.
func (s *Server) prepareUpdate(ctx context.Context, c *Call, obj, old Object, dryRun bool) error {
	meta, oldMeta := object.Meta(obj), object.Meta(old)
	object.SetOrDelete(meta, "generation", oldMeta["generation"], oldMeta["generation"] != nil)
	switch {
	case c.strategy() != nil && c.strategy().PrepareUpdate != nil:
		c.strategy().PrepareUpdate(obj, old, c.Subresource, s.env(c))
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
	if err := s.assign(ctx, c, obj, old, dryRun); err != nil {
		return err
	}
	errs, err := c.validateUpdate(ctx, obj, old)
	if err != nil {
		return err
	}
	if errs = append(s.validateIn(ctx, c, obj, old), errs...); len(errs) > 0 {
		return apierrors.NewInvalid(c.kindOf(obj), object.String(meta, "name"), errs)
	}
	c.warnings(ctx, obj, old)
	apply.KeepTimes(old, obj) // a write that changes nothing else does not change the times of managedFields either
	return nil
}

// keepStatus makes an update of the main resource ignore status where /status exists.
func (c *Call) keepStatus(obj, old Object) {
	if !c.Version.Status {
		return
	}
	status, had := old["status"]
	object.SetOrDelete(obj, "status", status, had)
}

// keepOnlyStatus makes an update of /status ignore all but status and the managed fields that record it.
func keepOnlyStatus(obj, old Object) {
	status, has := obj["status"]
	managed, hasManaged := object.Meta(obj)["managedFields"]
	for key := range obj {
		delete(obj, key)
	}
	for key, v := range old {
		obj[key] = v
	}
	meta := Object{}
	for key, v := range object.Meta(old) {
		meta[key] = v
	}
	obj["metadata"] = meta
	object.SetOrDelete(meta, "managedFields", managed, hasManaged)
	object.SetOrDelete(obj, "status", status, has)
}

func sameBeyondMeta(a, b Object) bool {
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
