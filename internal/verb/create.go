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
	obj, documents, err := v.decoder.decode(ctx, c, body, fieldValidation(o.FieldValidation))
	if err != nil {
		return nil, err
	}
	recordSent(c, obj)
	if err := unmask(c, obj, nil); err != nil {
		return nil, err
	}
	w := v.begin(c, o.DryRun)
	w.documents = documents
	return w.create(ctx, obj, o)
}

// Create stores obj, a pruned and defaulted object of the call's version, as a new object. Create takes ownership of
// obj.
func (v *Verbs) Create(ctx context.Context, c *Call, obj object.Object, o metav1.CreateOptions) (*Result, error) {
	return v.begin(c, o.DryRun).create(ctx, obj, o)
}

// create repeats createOnce while a write by another replica, or another object's allocation, comes first.
func (w *write) create(ctx context.Context, obj object.Object, o metav1.CreateOptions) (*Result, error) {
	if !w.sequences.needed(w.call) && w.allocations.allocator(w.call) == nil && !proves(w) {
		return w.createOnce(ctx, obj, o)
	}
	for {
		res, err := w.proving(ctx, func() (*Result, error) {
			return w.createOnce(ctx, runtime.DeepCopyJSON(obj), o)
		})
		if !retry(err) {
			return res, err
		}
		if _, err := w.View().Fresh(ctx); err != nil {
			return nil, err
		}
	}
}

// createOnce completes the metadata of a client's object and inserts it.
func (w *write) createOnce(ctx context.Context, obj object.Object, o metav1.CreateOptions) (*Result, error) {
	defer w.sequences.lock(w.call)()
	w.refresh()

	if err := objectmeta.MatchNamespace(obj, w.call.Namespace); err != nil {
		return nil, err
	}
	if w.call.Resource.Terminating {
		return nil, terminating(w.call, object.String(object.Meta(obj), "name"))
	}
	objectmeta.DropDuplicateOwners(obj, func(text string) { request.Warn(ctx, text) })
	meta := object.Meta(obj)
	objectmeta.WipeSystemFields(meta)

	own, err := w.tracker.ownership(ctx, w.call)
	if err != nil {
		return nil, err
	}
	w.tracker.track(own, nil, obj, manager(w.call, o.FieldManager))
	w.attributes = w.admission.attributes(ctx, w.call, admit.Create, object.String(meta, "name"), &o)
	w.attributes.Object = obj
	return w.insert(ctx)
}

// insert admits the new object in the attributes, gives it a name and stores it.
func (w *write) insert(ctx context.Context) (*Result, error) {
	if err := w.admitNew(ctx); err != nil {
		return nil, err
	}
	meta := object.Meta(w.obj)
	prefix := object.String(meta, "generateName")
	if prefix == "" || object.String(meta, "name") != "" {
		made, err := w.insertNamed(ctx, false)
		if errors.Is(err, store.ErrExists) {
			return nil, w.alreadyExists(ctx, w.call, object.String(object.Meta(w.obj), "name"))
		}
		return made, err
	}
	// A generated name may be taken; as in Kubernetes, seven more are tried. PrepareCreate may depend on the name, so
	// each attempt works on a copy.
	rules, unnamed := w.call.Strategy(), w.obj
	prepares := rules != nil && rules.PrepareCreate != nil
	for attempt := 0; ; attempt++ {
		if prepares {
			w.obj = runtime.DeepCopyJSON(unnamed)
		}
		name := generatedName(rules, prefix, w.newSuffix())
		object.Meta(w.obj)["name"] = name
		made, err := w.insertNamed(ctx, true)
		switch {
		case !errors.Is(err, store.ErrExists):
			return made, err
		case attempt == 7:
			return nil, apierrors.NewGenerateNameConflict(w.call.GroupResource(), name, 1)
		}
	}
}

// admitNew runs the mutating plugins and the guard, and sets the system fields.
func (w *write) admitNew(ctx context.Context) error {
	if err := w.mutate(ctx, w.attributes); err != nil {
		return err
	}
	w.obj = w.attributes.Object
	if err := w.guard(ctx, w.call, w.obj, nil); err != nil {
		return err
	}
	if err := objectmeta.MatchNamespace(w.obj, w.call.Namespace); err != nil {
		return err
	}
	w.tracker.fillSystemFields(w.call, w.obj)
	if w.call.Version.Status && w.call.Resource.Custom() {
		delete(w.obj, "status")
	}
	return nil
}

// insertNamed prepares, validates and commits the new object, which has its name. It returns store.ErrExists if the
// name is taken.
func (w *write) insertNamed(ctx context.Context, generated bool) (*Result, error) {
	if err := w.prepareNew(ctx, generated); err != nil {
		return nil, err
	}
	if err := w.validateNew(ctx); err != nil {
		return nil, err
	}
	defer w.attributes.EndSequence()
	if err := w.admission.validate(ctx, w.attributes, w.obj); err != nil {
		return nil, err
	}
	canonicalize(w.call, w.obj)
	meta := object.Meta(w.obj)
	// In Kubernetes the store makes this check, so dry runs skip it. Text that is not a revision is dropped.
	revision, err := strconv.ParseUint(object.String(meta, "resourceVersion"), 10, 64)
	if err == nil && revision != 0 && !w.dryRun {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	delete(meta, "resourceVersion")
	w.name = object.String(meta, "name")
	conclude, err := w.proven(ctx)
	if err != nil {
		return nil, err
	}
	made, err := w.commitNew(ctx)
	conclude(err)
	if errors.Is(err, store.ErrExists) {
		return nil, err
	}
	return made, storeError(err, w.call, w.name)
}

// prepareNew completes the new object by the rules of its kind and by its exclusive properties.
func (w *write) prepareNew(ctx context.Context, generated bool) error {
	rules := w.call.Strategy()
	if rules != nil && rules.PrepareCreate != nil {
		rules.PrepareCreate(w.obj, w.Env(w.call))
	}
	if err := w.allocations.assign(ctx, w.call, w.obj, nil, w.dryRun); err != nil {
		return err
	}
	if generated && rules != nil && rules.Default != nil {
		rules.Default(w.obj) // some defaults depend on a generated name
	}
	return nil
}

// validateNew validates the new object, warns the client of unwise values, and checks the right to create it.
func (w *write) validateNew(ctx context.Context) error {
	errs, err := validateObject(ctx, w.call, w.obj)
	if err != nil {
		return err
	}
	if errs = append(w.validateIn(ctx, w.call, w.obj, nil), errs...); len(errs) > 0 {
		name := object.String(object.Meta(w.obj), "name")
		return invalid.New(kindOf(w.call, w.obj), name, secrecy.Redact(w.call.Version, errs))
	}
	warnUnwise(ctx, w.call, w.obj, nil)
	return w.admission.mayCreate(ctx, w.call) // after validation, as in Kubernetes
}

// commitNew commits the new object in the sequence that a validating plugin requires.
func (w *write) commitNew(ctx context.Context) (*Result, error) {
	for {
		w.follow()
		made, err := w.commit(ctx)
		required := w.attributes.Sequence
		if required == nil || !errors.Is(err, store.ErrOvertaken) {
			return made, err
		}
		if required.Seen, err = required.Again(ctx); err != nil {
			return nil, err
		}
	}
}

// alreadyExists returns the error for a taken name. The message mentions if the existing object is being deleted.
func (v *Verbs) alreadyExists(ctx context.Context, c *Call, name string) error {
	err := apierrors.NewAlreadyExists(c.GroupResource(), name)
	if _, late := v.View().Fresh(ctx); late != nil {
		return err
	}
	if e := v.View().Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, name); e != nil && e.Deleting {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
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
