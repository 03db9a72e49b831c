package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func (s *Server) serveCreate(w http.ResponseWriter, r *http.Request, c *Call) error {
	media, err := c.negotiate(r)
	if err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	options, err := createOptions(r)
	if err != nil {
		return err
	}
	obj, err := s.decode(r.Context(), c, body, r.Header.Get("Content-Type"), fieldValidation(options.FieldValidation))
	if err != nil {
		return err
	}
	made, err := s.Create(r.Context(), c, obj, *options)
	if err != nil {
		return err
	}
	return s.writeObject(w, r, http.StatusCreated, c, made, media)
}

// Create stores obj, a pruned and defaulted object of the call's version, as a new object. It owns obj from here on.
//
// This is the story of a write: say who and where, admit, note who owns which field, prepare, validate, store, show.
func (s *Server) Create(ctx context.Context, c *Call, obj Object, o metav1.CreateOptions) (*Result, error) {
	if !s.needsSequence(c) && s.allocator(c) == nil {
		return s.createOnce(ctx, c, obj, o)
	}
	for {
		res, err := s.createOnce(ctx, c, runtime.DeepCopyJSON(obj), o)
		if !retry(err) {
			return res, err
		}
		if _, err := s.View.Fresh(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *Server) createOnce(ctx context.Context, c *Call, obj Object, o metav1.CreateOptions) (*Result, error) {
	if c.Resource.Terminating {
		return nil, terminating(c, "create")
	}
	defer s.lock(c)()
	s.refresh(c)

	if err := matchNamespace(obj, c.Namespace); err != nil {
		return nil, err
	}
	c.dropDuplicateOwners(obj, func(text string) { c.warn(ctx, text) })
	meta := object.Meta(obj)
	wipeSystemFields(meta)

	own, err := s.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	s.track(own, nil, obj, c.manager(o.FieldManager))
	a := s.admissionAttributes(ctx, c, admit.Create, object.String(meta, "name"), &o, isDryRun(o.DryRun))
	a.Object = obj
	return s.storeNew(ctx, c, a)
}

// storeNew lets admission change a new object, and finishes it: system fields, rules, validation, one transaction.
func (s *Server) storeNew(ctx context.Context, c *Call, a *admit.Attributes) (*Result, error) {
	if err := s.mutate(ctx, c, a); err != nil {
		return nil, err
	}
	obj := a.Object
	c.dryRun = a.DryRun
	if err := matchNamespace(obj, c.Namespace); err != nil {
		return nil, err
	}
	s.fillSystemFields(c, obj)
	meta := object.Meta(obj)
	if c.Version.Status && c.Resource.Custom() {
		delete(obj, "status")
	}
	prefix := object.String(meta, "generateName")
	generated := prefix != "" && object.String(meta, "name") == ""
	rules := c.strategy()
	prepares := rules != nil && rules.PrepareCreate != nil
	unnamed := obj

	// A generated name may be taken; seven more are tried, as upstream does.
	for attempt := 0; ; attempt++ {
		if generated {
			if prepares { // what that adds may depend on the name, so each name gets a copy, as in Kubernetes
				obj = runtime.DeepCopyJSON(unnamed)
				meta = object.Meta(obj)
			}
			meta["name"] = generatedName(prefix, s.NewSuffix())
		}
		if prepares {
			rules.PrepareCreate(obj, s.env(c))
		}
		if err := s.assign(ctx, c, obj, nil, a.DryRun); err != nil {
			return nil, err
		}
		if generated && rules != nil && rules.Default != nil {
			rules.Default(obj) // some defaults depend on the name
		}
		if err := s.validateNew(ctx, c, obj); err != nil {
			return nil, err
		}
		if err := s.validateAdmission(ctx, a, obj); err != nil {
			return nil, err
		}
		c.canonicalize(obj)
		name := object.String(meta, "name")
		// In Kubernetes the store says so, which a dry run does not reach. What is no revision is dropped.
		revision, err := strconv.ParseUint(object.String(meta, "resourceVersion"), 10, 64)
		if err == nil && revision != 0 && !c.dryRun {
			return nil, errors.New("resourceVersion should not be set on objects to be created")
		}
		delete(meta, "resourceVersion")
		made, err := s.insert(ctx, c, obj, name)
		if errors.Is(err, store.ErrExists) && generated {
			if attempt < 7 {
				continue
			}
			return nil, apierrors.NewGenerateNameConflict(c.groupResource(), name, 1)
		}
		if errors.Is(err, store.ErrExists) {
			return nil, alreadyExists(ctx, s.View, c, name)
		}
		return made, storeError(err, c, name)
	}
}

// alreadyExists answers a creation under a name that is taken, and says if what has it is being deleted.
func alreadyExists(ctx context.Context, view *watchcache.View, c *Call, name string) error {
	err := apierrors.NewAlreadyExists(c.groupResource(), name)
	if _, late := view.Fresh(ctx); late != nil {
		return err
	}
	if e := view.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, name); e != nil && e.Deleting {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

func (s *Server) insert(ctx context.Context, c *Call, obj Object, name string) (*Result, error) {
	res, err := s.insertWhole(ctx, c, obj, name)
	if errors.Is(err, store.ErrTooLarge) && c.untrack(obj) {
		return s.insertWhole(ctx, c, obj, name)
	}
	return res, err
}

func (s *Server) insertWhole(ctx context.Context, c *Call, obj Object, name string) (*Result, error) {
	stored, err := s.toStorage(ctx, c, obj)
	if err != nil {
		return nil, err
	}
	if c.dryRun {
		return s.dryCreated(ctx, c, obj, name, stored)
	}
	var revision int64
	err = s.commitWithAllocations(ctx, c, nil, obj, func(also []store.Change) (err error) {
		revision, err = s.create(ctx, c, name, s.persisted(c, stored), also)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.waitVisible(ctx, c, revision); err != nil {
		return nil, err
	}
	return s.result(ctx, c, obj, name, stored, revision), nil
}

// dryCreated is what a dry run does instead of the transaction that creates obj.
func (s *Server) dryCreated(ctx context.Context, c *Call, obj Object, name string, stored codec.Stored) (*Result,
	error) {
	if _, err := s.View.Fresh(ctx); err != nil {
		return nil, err
	}
	if s.View.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, name) != nil {
		return nil, store.ErrExists
	}
	return dryResult(ctx, s.Convert, c, obj, stored)
}

// waitVisible waits until the view has caught up with a write that changes what the server serves, so that the
// client's next request finds it. Other writes need not wait: reads catch up by themselves.
func (s *Server) waitVisible(ctx context.Context, c *Call, revision int64) error {
	if rules := c.strategy(); rules == nil || !rules.Serial && !rules.VisibleOnReturn {
		return nil
	}
	return s.View.WaitFor(ctx, revision)
}

func (s *Server) validateNew(ctx context.Context, c *Call, obj Object) error {
	errs, err := c.validate(ctx, obj)
	if err != nil {
		return err
	}
	if errs = append(s.validateIn(ctx, c, obj, nil), errs...); len(errs) > 0 {
		return apierrors.NewInvalid(c.kindOf(obj), object.String(object.Meta(obj), "name"), errs)
	}
	c.warnings(ctx, obj, nil)
	return nil
}

// fillSystemFields gives a new object what only the server knows.
func (s *Server) fillSystemFields(c *Call, obj Object) {
	meta := object.Meta(obj)
	meta["uid"] = s.NewUID()
	meta["creationTimestamp"] = stamp(s.Now())
	if !c.Resource.NoGeneration {
		meta["generation"] = int64(1)
	}
}

// wipeSystemFields drops what only the server sets.
func wipeSystemFields(meta Object) {
	for _, key := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"selfLink"} {
		delete(meta, key)
	}
}

// generatedName appends a random suffix to a prefix, which is cut so that the name stays within 63 characters.
func generatedName(prefix, suffix string) string {
	if limit := 63 - len(suffix); len(prefix) > limit {
		prefix = prefix[:limit]
	}
	return prefix + suffix
}
