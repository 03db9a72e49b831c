package fairness

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"sync"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// producer is the field manager of these writes, as in Kubernetes.
const producer = "api-priority-and-fairness-config-producer-v1"

// wanted is a default object of every server.
type wanted struct {
	plural, name string
	// mandatory objects are restored whatever their annotation.
	mandatory bool
	spec      any
	// same reports whether the stored object has the spec.
	same func(e *watchcache.Entry) bool
}

// everything returns the objects that every server has, levels first.
func everything() (out []wanted) {
	for i, list := range [][]*flowcontrolv1.PriorityLevelConfiguration{
		bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations,
	} {
		for _, p := range list {
			out = append(out, wanted{levels, p.Name, i == 0, &p.Spec, func(e *watchcache.Entry) bool {
				return sameLevel(&p.Spec, objectOf[flowcontrolv1.PriorityLevelConfiguration](e))
			}})
		}
	}
	for i, list := range [][]*flowcontrolv1.FlowSchema{
		bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas,
	} {
		for _, f := range list {
			out = append(out, wanted{schemas, f.Name, i == 0, &f.Spec, func(e *watchcache.Entry) bool {
				stored := objectOf[flowcontrolv1.FlowSchema](e)
				return stored != nil && equality.Semantic.DeepEqual(&f.Spec, &stored.Spec)
			}})
		}
	}
	return out
}

// sameLevel compares a level with the stored one. The shares and the lending of the exempt level are the user's.
func sameLevel(want *flowcontrolv1.PriorityLevelConfigurationSpec, stored *flowcontrolv1.PriorityLevelConfiguration,
) bool {
	if stored == nil {
		return false
	}
	if want.Exempt != nil && stored.Spec.Exempt != nil {
		want = want.DeepCopy()
		want.Exempt = stored.Spec.Exempt
	}
	return equality.Semantic.DeepEqual(want, &stored.Spec)
}

// ensure creates missing objects and restores changed ones that the server owns. It owns the mandatory objects, and the
// others with the annotation apf.kubernetes.io/autoupdate-spec, which they have while unchanged since their creation.
// ensure deletes owned objects of an earlier version that this one does not have. It writes nothing if all is up to
// date.
func ensure(ctx context.Context, h *part.Host) error {
	if h.Catalog.Snapshot().Resource(flowcontrolv1.GroupName, schemas) == nil {
		return nil // --runtime-config has disabled them
	}
	var wg sync.WaitGroup
	list := everything()
	errs := make([]error, len(list))
	for i, w := range list { // concurrently: the first start creates all of them, and each write waits for the disk
		wg.Go(func() { errs[i] = w.ensure(ctx, h) })
	}
	wg.Wait()
	return errors.Join(append(errs, removeUnknown(ctx, h, list))...)
}

// reconciler reconciles the objects after changes by others. It belongs to one goroutine.
type reconciler struct {
	seen [2]*watchcache.Snapshot // levels and schemas when all was up to date; nil before
}

func (k *reconciler) keep(ctx context.Context, h *part.Host) error {
	now := [2]*watchcache.Snapshot{h.View.Collection(levels).Snapshot(), h.View.Collection(schemas).Snapshot()}
	if k.seen[0] != nil && k.seen[0].Same(now[0]) && k.seen[1].Same(now[1]) {
		return nil
	}
	if err := ensure(ctx, h); err != nil {
		return err
	}
	k.seen = now // the snapshots precede this call's own writes
	return nil
}

func (w *wanted) ensure(ctx context.Context, h *part.Host) error {
	e := h.View.Collection(w.plural).Snapshot().Get("", w.name)
	if e == nil {
		return control.IgnoreExists(w.create(ctx, h))
	}
	update, annotate := w.revise(e)
	if !update && !annotate {
		return nil
	}
	call, err := h.Verbs.Call(resource(w.plural), "", w.name, verb.ServerUser())
	if err != nil {
		return err
	}
	_, err = h.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: producer},
		func(obj object.Object) (object.Object, error) {
			if object.String(object.Meta(obj), "resourceVersion") != strconv.FormatInt(e.Revision, 10) {
				return obj, nil // another writer was faster; the next run decides
			}
			if update {
				obj["spec"] = toObject(w.spec)
			}
			if annotate {
				auto, _ := w.automatic(e)
				meta := object.Meta(obj)
				annotations := maps.Clone(object.Map(meta, "annotations"))
				if annotations == nil {
					annotations = object.Object{}
				}
				annotations[flowcontrolv1.AutoUpdateAnnotationKey] = strconv.FormatBool(auto)
				meta["annotations"] = annotations
			}
			return obj, nil
		})
	if apierrors.IsConflict(err) {
		return nil
	}
	return control.IgnoreNotFound(err)
}

func (w *wanted) create(ctx context.Context, h *part.Host) error {
	call, err := h.Verbs.Call(resource(w.plural), "", w.name, verb.ServerUser())
	if err != nil {
		return err
	}
	obj, err := h.Verbs.New(call, object.Object{
		"metadata": object.Object{
			"name": w.name, "annotations": object.Object{flowcontrolv1.AutoUpdateAnnotationKey: "true"},
		},
		"spec": toObject(w.spec),
	})
	if err != nil {
		return err
	}
	_, err = h.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: producer})
	return err
}

// automatic reports whether the server owns the spec of an object, and whether the object has the annotation.
func (w *wanted) automatic(e *watchcache.Entry) (auto, set bool) {
	var stored metav1.PartialObjectMetadata
	if json.Unmarshal(e.Peek(), &stored) != nil {
		return false, true
	}
	value, err := strconv.ParseBool(stored.Annotations[flowcontrolv1.AutoUpdateAnnotationKey])
	auto = w.mandatory
	if !auto {
		// Without the annotation, a changed object is the user's.
		auto = err == nil && value || err != nil && e.Generation == 1
	}
	return auto, err == nil && value == auto
}

// revise reports whether the spec, or the annotation, of a stored object is to be written.
func (w *wanted) revise(e *watchcache.Entry) (update, annotate bool) {
	auto, annotated := w.automatic(e)
	return auto && !w.same(e), !annotated
}

// removeUnknown deletes the owned objects that this version does not have.
func removeUnknown(ctx context.Context, h *part.Host, list []wanted) error {
	known := map[[2]string]bool{}
	for _, w := range list {
		known[[2]string{w.plural, w.name}] = true
	}
	var errs []error
	for _, plural := range []string{schemas, levels} {
		for _, obj := range all[metav1.PartialObjectMetadata](h, plural) {
			auto, err := strconv.ParseBool(obj.Annotations[flowcontrolv1.AutoUpdateAnnotationKey])
			if err != nil || !auto || known[[2]string{plural, obj.Name}] {
				continue
			}
			call, err := h.Verbs.Call(resource(plural), "", obj.Name, verb.ServerUser())
			if err != nil {
				return err
			}
			_, err = h.Verbs.Delete(ctx, call, metav1.DeleteOptions{})
			errs = append(errs, control.IgnoreNotFound(err))
		}
	}
	return errors.Join(errs...)
}

// toObject returns a typed value in the form of decoded JSON.
func toObject(v any) object.Object {
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		panic(err) // these are plain structs
	}
	return obj
}
