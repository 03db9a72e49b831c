package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	kinds "github.com/bowsprit/bowsprit/internal/feature/extension"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Remote keeps the objects of a kind as objects of another API server. The public package describes it.
type Remote struct {
	Client    dynamic.Interface
	Resource  schema.GroupVersionResource
	Kind      string
	Namespace string // of all objects there, if only the remote kind is namespaced
	Prefix    string
	Labels    map[string]string
	Status    bool
	Load      func(there *unstructured.Unstructured) (*unstructured.Unstructured, error)
	Save      func(obj, there *unstructured.Unstructured) error
}

var _ kinds.Watcher = (*Remote)(nil)

// ours is an annotation on remote objects with the local metadata that the remote server does not store itself.
const ours = "extension.bowsprit.dev/metadata"

// objects returns the remote objects for a local namespace.
func (r *Remote) objects(namespace string) dynamic.ResourceInterface {
	if r.Namespace != "" {
		namespace = r.Namespace
	}
	if namespace == "" {
		return r.Client.Resource(r.Resource)
	}
	return r.Client.Resource(r.Resource).Namespace(namespace)
}

func (r *Remote) selector() string { return labels.Set(r.Labels).String() }

// List implements kinds.Storage.
func (r *Remote) List(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		o := metav1.ListOptions{Limit: page, LabelSelector: r.selector()}
		for {
			list, err := r.objects("").List(ctx, o)
			if err != nil {
				yield(nil, r.failed(err))
				return
			}
			for i := range list.Items {
				obj, err := r.load(&list.Items[i])
				if obj == nil && err == nil {
					continue
				}
				if !yield(obj, err) || err != nil {
					return
				}
			}
			if o.Continue = list.GetContinue(); o.Continue == "" {
				return
			}
		}
	}
}

// Get implements kinds.Watcher.
func (r *Remote) Get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	there, err := r.objects(namespace).Get(ctx, r.Prefix+name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, r.failed(err)
	}
	return r.load(there)
}

// Write implements kinds.Storage.
func (r *Remote) Write(ctx context.Context, old, now *unstructured.Unstructured) error {
	if now == nil {
		version := old.GetResourceVersion()
		return r.failed(r.objects(old.GetNamespace()).Delete(ctx, r.Prefix+old.GetName(),
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}))
	}
	objects := r.objects(now.GetNamespace())
	there := &unstructured.Unstructured{Object: map[string]any{}}
	if old != nil {
		var err error
		if there, err = objects.Get(ctx, r.Prefix+now.GetName(), metav1.GetOptions{}); err != nil {
			return r.failed(err)
		}
		if there.GetResourceVersion() != old.GetResourceVersion() {
			return kinds.ErrConflict
		}
	}
	if err := r.save(now, there); err != nil {
		return err
	}
	done, err := r.put(ctx, objects, there, old == nil)
	if err != nil {
		return r.failed(err)
	}
	now.SetResourceVersion(done.GetResourceVersion())
	return nil
}

// put writes a remote object, and its status if that is a subresource.
func (r *Remote) put(
	ctx context.Context, objects dynamic.ResourceInterface, there *unstructured.Unstructured, fresh bool,
) (done *unstructured.Unstructured, err error) {
	if fresh {
		done, err = objects.Create(ctx, there, metav1.CreateOptions{})
	} else {
		done, err = objects.Update(ctx, there, metav1.UpdateOptions{})
	}
	if err != nil || !r.Status || same(done.Object["status"], there.Object["status"]) {
		return done, err
	}
	there.SetResourceVersion(done.GetResourceVersion())
	return objects.UpdateStatus(ctx, there, metav1.UpdateOptions{})
}

func same(a, b any) bool {
	x, _ := json.Marshal(a) // both come from JSON
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// Changes implements kinds.Watcher.
func (r *Remote) Changes(ctx context.Context) (iter.Seq2[types.NamespacedName, error], error) {
	o := metav1.ListOptions{Limit: 1, LabelSelector: r.selector()}
	list, err := r.objects("").List(ctx, o)
	if err != nil {
		return nil, r.failed(err)
	}
	o = metav1.ListOptions{
		LabelSelector: o.LabelSelector, ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true,
	}
	first, err := r.objects("").Watch(ctx, o)
	if err != nil {
		return nil, r.failed(err)
	}
	return func(yield func(types.NamespacedName, error) bool) {
		for w := first; ; {
			revision, err := r.yieldEvents(w, yield)
			if errors.Is(err, errEnough) {
				return
			}
			if revision == "" && err == nil {
				err = errNoEvents // an API server sends bookmarks
			}
			if err == nil {
				o.ResourceVersion = revision
				w, err = r.objects("").Watch(ctx, o)
			}
			if err != nil {
				yield(types.NamespacedName{}, r.failed(err))
				return
			}
		}
	}, nil
}

var (
	errEnough   = errors.New("the caller wants no more")
	errNoEvents = errors.New("the watch has ended without an event")
)

// yieldEvents yields the changes of a watch until it ends, and returns the revision from which the next one continues.
func (r *Remote) yieldEvents(
	w watch.Interface, yield func(types.NamespacedName, error) bool,
) (revision string, err error) {
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return revision, apierrors.FromObject(event.Object)
		}
		obj, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return revision, fmt.Errorf("a watch of %s returned a %T", r.Resource.GroupResource(), event.Object)
		}
		revision = obj.GetResourceVersion()
		name, ok := strings.CutPrefix(obj.GetName(), r.Prefix)
		if event.Type == watch.Bookmark || !ok {
			continue
		}
		namespace := obj.GetNamespace()
		if r.Namespace != "" {
			namespace = ""
		}
		if !yield(types.NamespacedName{Namespace: namespace, Name: name}, nil) {
			return revision, errEnough
		}
	}
	return revision, nil
}

// failed turns the remote server's precondition failures into conflicts, and adds the origin to other errors.
func (r *Remote) failed(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err),
		apierrors.IsNotFound(err) && aboutObject(err, r.Resource.Resource):
		return kinds.ErrConflict
	}
	return fmt.Errorf("%s of the API server where they are kept: %w", r.Resource.GroupResource(), err)
}

// aboutObject reports whether an error is about an object of a resource, and not about its namespace.
func aboutObject(err error, resource string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == resource
}

// load converts a remote object to a local one, or returns nil if it is not of this kind.
func (r *Remote) load(there *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name, ok := strings.CutPrefix(there.GetName(), r.Prefix)
	if !ok || !labels.SelectorFromSet(r.Labels).Matches(labels.Set(there.GetLabels())) {
		return nil, nil
	}
	load := r.Load
	if load == nil {
		load = loadSame
	}
	obj, err := load(there.DeepCopy())
	if err != nil || obj == nil {
		return nil, err
	}
	meta := map[string]any{}
	if kept := there.GetAnnotations()[ours]; kept == "" || json.Unmarshal([]byte(kept), &meta) != nil || meta == nil {
		meta = map[string]any{"uid": string(there.GetUID())}
		if made, ok, _ := unstructured.NestedString(there.Object, "metadata", "creationTimestamp"); ok {
			meta["creationTimestamp"] = made
		}
	}
	obj.Object["metadata"] = object.WholeNumbers(meta)
	obj.SetName(name)
	if r.Namespace == "" {
		obj.SetNamespace(there.GetNamespace())
	}
	obj.SetLabels(without(there.GetLabels(), r.Labels))
	obj.SetAnnotations(without(there.GetAnnotations(), map[string]string{ours: ""}))
	obj.SetResourceVersion(there.GetResourceVersion())
	return obj, nil
}

// without returns a map without the keys of another, nil if nothing is left.
func without(all, some map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool { _, ok := some[key]; return ok })
	if len(out) == 0 {
		return nil
	}
	return out
}

// save writes the content of the local obj to the remote object there.
func (r *Remote) save(obj, there *unstructured.Unstructured) error {
	save := r.Save
	if save == nil {
		save = saveSame
	}
	if err := save(obj.DeepCopy(), there); err != nil {
		return err
	}
	there.SetAPIVersion(r.Resource.GroupVersion().String())
	there.SetKind(r.Kind)
	there.SetName(r.Prefix + obj.GetName())
	there.SetNamespace(obj.GetNamespace())
	if r.Namespace != "" {
		there.SetNamespace(r.Namespace)
	}
	set := map[string]string{}
	maps.Copy(set, obj.GetLabels())
	maps.Copy(set, r.Labels)
	there.SetLabels(set)
	meta := map[string]any{}
	maps.Copy(meta, obj.Object["metadata"].(map[string]any))
	for _, elsewhere := range []string{"name", "namespace", "labels", "annotations", "resourceVersion"} {
		delete(meta, elsewhere)
	}
	kept, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	notes := map[string]string{}
	maps.Copy(notes, obj.GetAnnotations())
	notes[ours] = string(kept)
	there.SetAnnotations(notes)
	return nil
}

// loadSame and saveSame convert between kinds with equal fields.
func loadSame(there *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	delete(there.Object, "apiVersion")
	delete(there.Object, "kind")
	return there, nil
}

func saveSame(obj, there *unstructured.Unstructured) error {
	for field := range there.Object {
		if field != "metadata" {
			delete(there.Object, field)
		}
	}
	for field, value := range obj.Object {
		if field != "metadata" {
			there.Object[field] = value
		}
	}
	return nil
}
