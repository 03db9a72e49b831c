package admit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// group is the group of the written kinds: widgets in namespaces, with two versions and a status, and cluster-wide
// gadgets.
const group = "example.com"

func resources() []*catalog.Resource {
	kind := func(plural, kind string, namespaced bool, versions ...*catalog.Version) *catalog.Resource {
		return &catalog.Resource{
			Group: group, Plural: plural, Kind: kind, Namespaced: namespaced, Versions: versions, Storage: versions[0],
			Prefix: group + "/" + plural, Served: true,
		}
	}
	return []*catalog.Resource{
		kind("widgets", "Widget", true, &catalog.Version{Name: "v2", Served: true, Status: true, Declared: 1},
			&catalog.Version{Name: "v1", Served: true, Status: true}),
		kind("gadgets", "Gadget", false, &catalog.Version{Name: "v1", Served: true}),
	}
}

// write is one request.
type write struct {
	resource, version, subresource string
	operation                      admit.Operation
	namespace, name                string
	dryRun                         bool
	object, old                    map[string]any
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomWrite(r *rand.Rand) write {
	w := write{resource: pick(r, "widgets", "widgets", "gadgets"), version: "v1", namespace: pick(r, "red", "blue"),
		name:      pick(r, "a", "b", ""),
		operation: pick(r, admit.Create, admit.Update, admit.Delete), dryRun: r.IntN(6) == 0}
	kind := "Gadget"
	if w.resource == "widgets" {
		kind, w.version = "Widget", pick(r, "v1", "v2")
		w.subresource = pick(r, "", "", "status")
	} else {
		w.namespace = ""
	}
	if w.operation != admit.Create && w.name == "" {
		w.name = "a"
	}
	object := func() map[string]any {
		meta := map[string]any{"labels": map[string]any{pick(r, "color", "size"): pick(r, "red", "blue")}}
		if w.name == "" {
			meta["generateName"] = "g-"
		} else {
			meta["name"] = w.name
		}
		if w.namespace != "" {
			meta["namespace"] = w.namespace
		}
		return map[string]any{
			"apiVersion": group + "/" + w.version, "kind": kind, "metadata": meta,
			"spec": map[string]any{"replicas": int64(r.IntN(6))},
		}
	}
	if w.operation != admit.Delete {
		w.object = object()
	}
	if w.operation != admit.Create {
		w.old = object()
	}
	return w
}

var me = &user.DefaultInfo{
	Name: "me", UID: "7", Groups: []string{"system:masters", "crew"}, Extra: map[string][]string{"k": {"v"}},
}

// response is the result of a write.
type response struct {
	Object      map[string]any
	Status      *metav1.Status
	Warnings    []string
	Annotations map[string]string
}

func (s response) String() string {
	raw, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func statusOf(err error) *metav1.Status {
	if err == nil {
		return nil
	}
	if s, ok := err.(interface{ Status() metav1.Status }); ok {
		status := s.Status()
		return &status
	}
	return &metav1.Status{Message: "not a status: " + err.Error()}
}

func (w write) optionsKind() string {
	return map[admit.Operation]string{
		admit.Create: "CreateOptions", admit.Update: "UpdateOptions", admit.Delete: "DeleteOptions",
	}[w.operation]
}

// ask passes the write to one of our functions.
func (w write) ask(c *catalog.Catalog, f func(context.Context, *admit.Attributes) error) response {
	res, ver := c.Snapshot().Served(group, w.version, w.resource)
	var mu sync.Mutex
	var out response
	a := &admit.Attributes{
		Operation: w.operation,
		Target: admit.Target{
			Resource: res, Version: ver, Subresource: w.subresource, Namespace: w.namespace, Name: w.name,
			Kind: schema.GroupVersionKind{Group: group, Version: w.version, Kind: res.Kind},
		},
		Request: admit.Request{
			User: me, DryRun: w.dryRun,
			Options: func() admit.Object {
				return admit.Object{"kind": w.optionsKind(), "apiVersion": "meta.k8s.io/v1", "fieldManager": "tester"}
			},
			Warn: func(text string) { mu.Lock(); out.Warnings = append(out.Warnings, text); mu.Unlock() },
		},
		Forms: admit.Forms{
			Convert: func(_ context.Context, obj admit.Object, _, to *catalog.Version) (admit.Object, error) {
				obj = runtime.DeepCopyJSON(obj)
				obj["apiVersion"] = group + "/" + to.Name
				return obj, nil
			},
			Normalize: func(*catalog.Version, admit.Object) error { return nil },
		},
		Object: runtime.DeepCopyJSON(w.object), Old: runtime.DeepCopyJSON(w.old),
	}
	if w.operation == admit.Delete {
		a.Options = func() admit.Object { return admit.Object{"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"} }
	}
	out.Status = statusOf(f(context.Background(), a))
	out.Object, out.Annotations = a.Object, a.Annotations()
	return out
}

// callUpstream gives the write to one of Kubernetes'.
func (w write) callUpstream(f func(context.Context, admission.Attributes, admission.ObjectInterfaces) error) response {
	var out response
	kind := map[string]string{"widgets": "Widget", "gadgets": "Gadget"}[w.resource]
	var obj, old runtime.Object
	if w.object != nil {
		obj = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(w.object)}
	}
	if w.old != nil {
		old = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(w.old)}
	}
	meta := metav1.TypeMeta{Kind: w.optionsKind(), APIVersion: "meta.k8s.io/v1"}
	var options runtime.Object
	switch w.operation {
	case admit.Create:
		options = &metav1.CreateOptions{TypeMeta: meta, FieldManager: "tester"}
	case admit.Update:
		options = &metav1.UpdateOptions{TypeMeta: meta, FieldManager: "tester"}
	default:
		options = &metav1.DeleteOptions{TypeMeta: meta}
	}
	a := &attributes{Attributes: admission.NewAttributesRecord(obj, old,
		schema.GroupVersionKind{Group: group, Version: w.version, Kind: kind}, w.namespace, w.name,
		schema.GroupVersionResource{Group: group, Version: w.version, Resource: w.resource}, w.subresource,
		admission.Operation(w.operation), options, w.dryRun, me)}
	recorder := &warnings{}
	err := f(warning.WithWarningRecorder(context.Background(), recorder), a,
		interfaces{unstructuredscheme.NewUnstructuredObjectTyper()})
	out.Status, out.Warnings, out.Annotations = statusOf(err), recorder.texts, a.annotations
	if u, ok := a.GetObject().(*unstructured.Unstructured); ok && u != nil {
		out.Object = u.Object
	}
	return out
}

// attributes keep annotations where a test can read them.
type attributes struct {
	admission.Attributes
	mu          sync.Mutex
	annotations map[string]string
}

func (a *attributes) AddAnnotation(key, value string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.annotations == nil {
		a.annotations = map[string]string{}
	}
	if _, ok := a.annotations[key]; ok {
		return fmt.Errorf("%s is there", key)
	}
	a.annotations[key] = value
	return nil
}

func (a *attributes) AddAnnotationWithLevel(key, value string, _ auditinternal.Level) error {
	return a.AddAnnotation(key, value)
}

type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) AddWarning(_, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// interfaces are kube-apiserver's interfaces for plugins with custom kinds, with the conversion None.
type interfaces struct{ runtime.ObjectTyper }

func (i interfaces) GetObjectCreater() runtime.ObjectCreater     { return i }
func (i interfaces) GetObjectTyper() runtime.ObjectTyper         { return i }
func (i interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return i }
func (i interfaces) GetObjectConvertor() runtime.ObjectConvertor { return i }
func (i interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	m := runtime.NewEquivalentResourceRegistry()
	for _, v := range []string{"v1", "v2"} {
		for _, sub := range []string{"", "status"} {
			m.RegisterKindFor(schema.GroupVersionResource{Group: group, Version: v, Resource: "widgets"}, sub,
				schema.GroupVersionKind{Group: group, Version: v, Kind: "Widget"})
		}
	}
	m.RegisterKindFor(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}, "",
		schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"})
	return m
}

func (interfaces) Default(runtime.Object) {}

func (interfaces) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

func (interfaces) Convert(in, out, _ any) error {
	from, to := in.(*unstructured.Unstructured), out.(*unstructured.Unstructured)
	kind := to.GroupVersionKind()
	to.Object = runtime.DeepCopyJSON(from.Object)
	to.SetGroupVersionKind(kind)
	return nil
}

func (interfaces) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (interfaces) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// namespaces that writes are in.
func namespaces() []*corev1.Namespace {
	return []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "red", Labels: map[string]string{"color": "red"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "blue", Labels: map[string]string{"color": "blue"}}},
	}
}

// namespaceMatcher returns the matcher of namespaces for Kubernetes' plugins.
func namespaceMatcher() *matching.Matcher {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, ns := range namespaces() {
		_ = indexer.Add(ns)
	}
	return matching.NewMatcher(corelisters.NewNamespaceLister(indexer), nil)
}

// view returns a view that holds the namespaces and the given objects, by key.
func view(t testing.TB, objects map[string]any) *watchcache.View {
	t.Helper()
	s, err := store.Open(t.Context(),
		store.Config{Prefix: "/registry", Etcd: embedded.Config{Dir: t.TempDir(), NoSync: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, ns := range namespaces() {
		objects["namespaces/"+ns.Name] = ns
	}
	for key, obj := range objects {
		raw, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), key, raw); err != nil {
			t.Fatal(err)
		}
	}
	v := watchcache.New(s, watchcache.Options{})
	if err := v.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = v.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return v
}
