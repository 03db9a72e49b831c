package control

import (
	"context"
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// follower follows the objects of one kind of another server, and updates the graph like the view does for stored
// objects.
type follower struct {
	g      *collector
	kind   *remoteKind
	cancel context.CancelFunc
	done   chan struct{}

	// The collector's lock guards the rest.

	synced bool
	uids   map[string]string // of all objects, by key
	// tracked holds the objects with owners or a deletion timestamp, by key.
	tracked map[string]tracked
}

// tracked is an object as the collector works on it.
type tracked struct {
	entry   *watchcache.Entry
	version string // its resourceVersion, an opaque text of the other server
}

var _ cache.ReflectorStore = (*follower)(nil)

// follow begins to follow a kind. The caller holds the lock.
func (g *collector) follow(ctx context.Context, k *remoteKind) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{
		g: g, kind: k, cancel: cancel, done: make(chan struct{}), uids: map[string]string{},
		tracked: map[string]tracked{},
	}
	reflector := cache.NewReflectorWithOptions(&remoteLister{g.remotes.client.Resource(k.gvr)},
		&metav1.PartialObjectMetadata{}, f, cache.ReflectorOptions{Name: k.prefix})
	go func() {
		defer close(f.done)
		reflector.RunWithContext(ctx)
	}()
	return f
}

// end stops following: the graph drops all entries from here, and nothing counts as deleted.
func (f *follower) end() {
	f.cancel()
	<-f.done
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	for key, t := range f.tracked {
		delete(f.g.mu.parked, location{f, key})
		delete(f.g.mu.graph.waiting, t.entry.UID)
		f.g.mu.graph.set(location{f, key}, ownershipOf(t.entry).references(), nil,
			func(p location) { f.g.need(p.String()) })
	}
	f.synced, f.uids, f.tracked = false, nil, nil
}

// Prefix is the path of the kind.
func (f *follower) Prefix() string { return f.kind.prefix }

func (f *follower) entry(key string) *watchcache.Entry {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	return f.tracked[key].entry
}

// has reports whether an object with that key and uid exists.
func (f *follower) has(key, uid string) bool {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	return f.uids[key] == uid
}

// idleLocked reports whether there are no objects.
func (f *follower) idleLocked() bool { return f.synced && len(f.uids) == 0 }

func (g *collector) follower(prefix string) *follower {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.remote.followers[prefix]
}

// Add implements cache.ReflectorStore.
func (f *follower) Add(obj any) error { return f.Update(obj) }

// Update implements cache.ReflectorStore.
func (f *follower) Update(obj any) error {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		f.putLocked(m)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (f *follower) Delete(obj any) error {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		f.dropLocked(keyOf(m))
	}
	return nil
}

// Replace implements cache.ReflectorStore: objects missing in the list have been deleted.
func (f *follower) Replace(list []any, _ string) error {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	there := make(map[string]bool, len(list))
	for _, obj := range list {
		if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
			there[keyOf(m)] = true
			f.putLocked(m)
		}
	}
	for key := range f.uids {
		if !there[key] {
			f.dropLocked(key)
		}
	}
	f.synced = true
	f.g.unpark(f.g.need)
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *follower) Resync() error { return nil }

func keyOf(m *metav1.PartialObjectMetadata) string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

func (f *follower) putLocked(m *metav1.PartialObjectMetadata) {
	key := keyOf(m)
	if len(m.OwnerReferences) == 0 && m.DeletionTimestamp == nil && f.tracked[key].entry == nil &&
		(f.uids[key] == "" || f.uids[key] == string(m.UID)) {
		f.uids[key] = string(m.UID) // the usual case
		return
	}
	now := f.newEntry(key, m)
	if now == nil {
		return
	}
	f.g.replace(f, f.lastLocked(key), now, f.g.need)
	f.uids[key] = now.UID
	if delete(f.tracked, key); len(m.OwnerReferences) > 0 || m.DeletionTimestamp != nil {
		f.tracked[key] = tracked{now, m.ResourceVersion}
	}
}

func (f *follower) dropLocked(key string) {
	if last := f.lastLocked(key); last != nil {
		f.g.replace(f, last, nil, f.g.need)
	}
	delete(f.uids, key)
	delete(f.tracked, key)
}

// lastLocked returns the last known state of an object, or nil.
func (f *follower) lastLocked(key string) *watchcache.Entry {
	if t, ok := f.tracked[key]; ok {
		return t.entry
	}
	uid, ok := f.uids[key]
	if !ok {
		return nil
	}
	return f.newEntry(key, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}})
}

// newEntry returns the parts of an object that the collector needs, in the form of a stored object.
func (f *follower) newEntry(key string, m *metav1.PartialObjectMetadata) *watchcache.Entry {
	meta := metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, DeletionTimestamp: m.DeletionTimestamp,
		Finalizers: m.Finalizers, OwnerReferences: m.OwnerReferences,
	}
	data, err := json.Marshal(metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: f.kind.gvr.GroupVersion().String(), Kind: f.kind.resource.Kind},
		ObjectMeta: meta,
	})
	if err != nil {
		return nil
	}
	e, err := watchcache.NewEntry(key, data, 0)
	if err != nil {
		return nil
	}
	return e
}

// version returns the resourceVersion of an object as the collector has seen it.
func (f *follower) version(it item) (string, error) {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	if t := f.tracked[it.at.key]; t.entry == it.entry {
		return t.version, nil
	}
	return "", errChanged
}

var errChanged = errors.New("the object has changed meanwhile")

func (f *follower) resource(it item) metadata.ResourceInterface {
	return f.g.remotes.client.Resource(f.kind.gvr).Namespace(it.entry.Namespace)
}

// remove deletes an object as the collector has seen it.
func (f *follower) remove(ctx context.Context, it item, o metav1.DeleteOptions) error {
	version, err := f.version(it)
	if err != nil {
		return err
	}
	o.Preconditions.ResourceVersion = &version
	return IgnoreNotFound(f.resource(it).Delete(ctx, it.entry.Name, o))
}

// update changes the owners and finalizers of an object as the collector has seen it.
func (f *follower) update(ctx context.Context, it item, change func(meta object.Object)) error {
	version, err := f.version(it)
	if err != nil {
		return err
	}
	var obj struct{ Metadata object.Object }
	if err := json.Unmarshal(it.entry.JSON(), &obj); err != nil {
		return err
	}
	change(obj.Metadata)
	patch, err := json.Marshal(object.Object{"metadata": object.Object{
		"uid": it.entry.UID, "resourceVersion": version, "ownerReferences": obj.Metadata["ownerReferences"],
		"finalizers": obj.Metadata["finalizers"],
	}})
	if err != nil {
		return err
	}
	_, err = f.resource(it).Patch(ctx, it.entry.Name, types.MergePatchType, patch, metav1.PatchOptions{
		FieldManager: "kube-controller-manager",
	})
	return IgnoreNotFound(err)
}

// remoteLister lists and watches a kind as metadata.
type remoteLister struct{ resource metadata.Getter }

var _ cache.ListerWatcherWithContext = (*remoteLister)(nil)

// ListWithContext implements cache.ListerWatcherWithContext.
func (l *remoteLister) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return l.resource.List(ctx, o)
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (l *remoteLister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return l.resource.Watch(ctx, o)
}

// List implements cache.ListerWatcher.
func (l *remoteLister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.resource.List(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (l *remoteLister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.resource.Watch(context.Background(), o)
}

// IsWatchListSemanticsUnSupported makes the reflector list first: an older server does not send the bookmark that ends
// the initial events of a watch.
func (l *remoteLister) IsWatchListSemanticsUnSupported() bool { return true }
