package verb

import (
	"context"
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/secrecy"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// CreateFrom is a POST: it stores the object in body as a new object.
func (v *Verbs) CreateFrom(ctx context.Context, c *Call, body decode.Body, o metav1.CreateOptions) (*Result, error) {
	obj, err := v.decoder.decode(ctx, c, body, fieldValidation(o.FieldValidation))
	if err != nil {
		return nil, err
	}
	c.recordSent(obj)
	if err := c.unmask(obj, nil); err != nil {
		return nil, err
	}
	return v.Create(ctx, c, obj, o)
}

// Create stores obj, a pruned and defaulted object of the call's version, as a new object. Create takes ownership of
// obj.
//
// A write has these steps: check the namespace, track field ownership, admit, prepare, validate, store, and encode the
// result.
func (v *Verbs) Create(ctx context.Context, c *Call, obj object.Object, o metav1.CreateOptions) (*Result, error) {
	if !v.sequences.needsSequence(c) && v.allocations.allocator(c) == nil {
		return v.createOnce(ctx, c, obj, o)
	}
	for {
		res, err := v.createOnce(ctx, c, runtime.DeepCopyJSON(obj), o)
		if !retry(err) {
			return res, err
		}
		if _, err := v.view.Fresh(ctx); err != nil {
			return nil, err
		}
	}
}

func (v *Verbs) createOnce(ctx context.Context, c *Call, obj object.Object, o metav1.CreateOptions) (*Result, error) {
	if c.Resource.Terminating {
		return nil, terminating(c, "create")
	}
	defer v.sequences.lock(c)()
	v.sequences.refresh(c)

	if err := objectmeta.MatchNamespace(obj, c.Namespace); err != nil {
		return nil, err
	}
	objectmeta.DropDuplicateOwners(obj, func(text string) { request.Warn(ctx, text) })
	meta := object.Meta(obj)
	objectmeta.WipeSystemFields(meta)

	own, err := v.tracker.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	v.tracker.track(own, nil, obj, c.manager(o.FieldManager))
	a := v.admission.admissionAttributes(ctx, c, admit.Create, object.String(meta, "name"), &o)
	a.Object = obj
	return v.storeNew(ctx, c, a)
}

// storeNew admits a new object and completes it: system fields, rules, validation, one transaction.
func (v *Verbs) storeNew(ctx context.Context, c *Call, a *admit.Attributes) (*Result, error) {
	if err := v.admission.mutate(ctx, c, a); err != nil {
		return nil, err
	}
	obj := a.Object
	if err := v.guard(ctx, c, obj, nil); err != nil {
		return nil, err
	}
	c.dryRun = a.DryRun
	if err := objectmeta.MatchNamespace(obj, c.Namespace); err != nil {
		return nil, err
	}
	v.tracker.fillSystemFields(c, obj)
	meta := object.Meta(obj)
	if c.Version.Status && c.Resource.Custom() {
		delete(obj, "status")
	}
	prefix := object.String(meta, "generateName")
	if prefix == "" || object.String(meta, "name") != "" {
		made, err := v.storeNamed(ctx, c, a, obj, false)
		if errors.Is(err, store.ErrExists) {
			return nil, v.alreadyExists(ctx, c, object.String(object.Meta(obj), "name"))
		}
		return made, err
	}
	// A generated name may be taken; as in Kubernetes, seven more are tried. PrepareCreate may depend on the name, so
	// each attempt works on a copy.
	rules, unnamed := c.Strategy(), obj
	prepares := rules != nil && rules.PrepareCreate != nil
	for attempt := 0; ; attempt++ {
		if prepares {
			obj = runtime.DeepCopyJSON(unnamed)
		}
		name := generatedName(rules, prefix, v.newSuffix())
		object.Meta(obj)["name"] = name
		made, err := v.storeNamed(ctx, c, a, obj, true)
		switch {
		case !errors.Is(err, store.ErrExists):
			return made, err
		case attempt == 7:
			return nil, apierrors.NewGenerateNameConflict(c.GroupResource(), name, 1)
		}
	}
}

// storeNamed prepares, validates and commits a new object with a name. It returns store.ErrExists if the name is taken.
func (v *Verbs) storeNamed(
	ctx context.Context, c *Call, a *admit.Attributes, obj object.Object, generated bool,
) (*Result, error) {
	rules := c.Strategy()
	if rules != nil && rules.PrepareCreate != nil {
		rules.PrepareCreate(obj, v.Env(c))
	}
	if err := v.allocations.assign(ctx, c, obj, nil, a.DryRun); err != nil {
		return nil, err
	}
	meta := object.Meta(obj)
	if generated && rules != nil && rules.Default != nil {
		rules.Default(obj) // some defaults depend on a generated name
	}
	if err := v.validateNew(ctx, c, obj); err != nil {
		return nil, err
	}
	defer a.EndSequence()
	if err := v.admission.validateAdmission(ctx, a, obj); err != nil {
		return nil, err
	}
	c.canonicalize(obj)
	// In Kubernetes the store makes this check, so dry runs skip it. Text that is not a revision is dropped.
	revision, err := strconv.ParseUint(object.String(meta, "resourceVersion"), 10, 64)
	if err == nil && revision != 0 && !c.dryRun {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	delete(meta, "resourceVersion")
	name := object.String(meta, "name")
	made, err := v.commitNew(ctx, c, a, change{obj: obj, name: name})
	if errors.Is(err, store.ErrExists) {
		return nil, err
	}
	return made, storeError(err, c, name)
}

// alreadyExists returns the error for a taken name. The message mentions if the existing object is being deleted.
func (r *Reader) alreadyExists(ctx context.Context, c *Call, name string) error {
	err := apierrors.NewAlreadyExists(c.GroupResource(), name)
	if _, late := r.view.Fresh(ctx); late != nil {
		return err
	}
	if e := r.view.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, name); e != nil && e.Deleting {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

func (v *Verbs) validateNew(ctx context.Context, c *Call, obj object.Object) error {
	errs, err := c.validate(ctx, obj)
	if err != nil {
		return err
	}
	if errs = append(v.validateIn(ctx, c, obj, nil), errs...); len(errs) > 0 {
		name := object.String(object.Meta(obj), "name")
		return invalid.New(c.kindOf(obj), name, secrecy.Redact(c.Version, errs))
	}
	c.warnings(ctx, obj, nil)
	return v.admission.mayCreate(ctx, c) // after validation, as in Kubernetes
}

// generatedName appends a random suffix to a prefix. It cuts the prefix so that the name has at most 63 characters. If
// the kind's rules set NameIsPrefix, the name is the prefix.
func generatedName(rules *catalog.Strategy, prefix, suffix string) string {
	if rules != nil && rules.NameIsPrefix {
		return prefix
	}
	if limit := 63 - len(suffix); len(prefix) > limit {
		prefix = prefix[:limit]
	}
	return prefix + suffix
}
