package extension

import (
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/primary"
)

// Storage stores the objects of a kind outside of the server's own store. The public package documents its contract.
type Storage interface {
	List(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error]
	Write(ctx context.Context, old, now *unstructured.Unstructured) error
}

// Watcher is a Storage with a stream of changes.
type Watcher interface {
	Storage
	Get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
	Changes(ctx context.Context) (iter.Seq2[types.NamespacedName, error], error)
}

// ErrConflict is the error of a Storage if an object's state differs from the expected one.
var ErrConflict = errors.New("the object was changed meanwhile")

var errElsewhere = errors.New("the object has been modified where it is kept; please apply your changes to the latest " +
	"version and try again")

// storedKind writes through to a Storage, and applies changes by others to the log.
//
// The lock of an object is held during the write to the storage and then to the log, so both end with the same change.
// A list that began before a write of an object is outdated for this object, and is ignored for it. A Watcher reports
// only that an object has changed: the server reads the object under the lock, so the log never goes backwards.
type storedKind struct {
	storage  Storage
	watcher  Watcher // storage, if it has a stream of changes
	resource catalog.GroupResource
	prefix   string
	poll     time.Duration
	host     *part.Host

	seed  maphash.Seed
	locks [64]sync.Mutex // of objects, by their keys

	syncing sync.Mutex // one list at a time
	mu      struct {
		sync.Mutex
		written map[string]bool // since the list began; nil if there is none
		// versions are the storage's resource versions of the objects in the log, if it has any.
		versions map[string]string
	}
}

func newStoredKind(k *Kind, r *catalog.Resource) *storedKind {
	out := &storedKind{
		storage: k.Storage, poll: k.Poll, prefix: r.Prefix, seed: maphash.MakeSeed(),
		resource: catalog.GroupResource{Group: r.Group, Resource: r.Plural},
	}
	out.watcher, _ = k.Storage.(Watcher)
	out.mu.versions = map[string]string{}
	return out
}

func (k *storedKind) lock(key string) (unlock func()) {
	l := &k.locks[maphash.String(k.seed, key)%uint64(len(k.locks))]
	l.Lock()
	return l.Unlock
}

// Write implements primary.Store.
func (k *storedKind) Write(ctx context.Context, w primary.Change, commit func() (int64, error)) (int64, error) {
	reached := false // the storage has the change
	revision, err := k.write(ctx, w, func() (int64, error) {
		reached = true
		return commit()
	})
	if err == nil {
		return revision, nil
	}
	if conflict := errors.Is(err, ErrConflict); conflict || reached {
		k.repair(ctx, w.Name)
		if !conflict {
			return revision, err
		}
		return 0, apierrors.NewConflict(schema.GroupResource(k.resource), w.Name, errElsewhere)
	}
	return revision, err
}

// repair resynchronizes the log with the storage after a write that reached only one of them. It continues if the
// client disconnects.
func (k *storedKind) repair(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairLimit)
	defer cancel()
	if err := k.sync(ctx); err != nil {
		k.host.Log.Warn("a storage cannot be listed after a failed write; served objects may be stale until a list succeeds",
			"resource", k.resource.Resource, "name", name, "error", err)
	}
}

// repairLimit bounds a repair.
const repairLimit = 30 * time.Second

func (k *storedKind) write(ctx context.Context, w primary.Change, commit func() (int64, error)) (int64, error) {
	key := keyOf(w.Namespace, w.Name)
	defer k.lock(key)()
	// The log decides which write is first. The later one has changed nothing.
	r, err := k.host.Store.Get(ctx, k.prefix+"/"+key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if w.Revision != 0 {
			return 0, store.ErrNotFound
		}
	case err != nil:
		return 0, err
	case w.Revision == 0:
		return 0, store.ErrExists
	case r.Revision != w.Revision:
		return 0, store.ErrConflict
	}
	old, err := decoded(w.Old)
	if err != nil {
		return 0, err
	}
	now, err := decoded(w.Now)
	if err != nil {
		return 0, err
	}
	if old != nil {
		old.SetResourceVersion(k.version(key))
	}
	version := ""
	if now != nil {
		now.SetResourceVersion("")
	}
	if err := k.storage.Write(ctx, old, now); err != nil {
		return 0, err
	}
	if now != nil {
		version = now.GetResourceVersion()
	}
	k.noteWritten(key)
	k.noteVersion(key, version)
	return commit()
}

func (k *storedKind) noteWritten(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.written != nil {
		k.mu.written[key] = true
	}
}

// noteVersion records the storage's resource version of an object in the log, or about to be. The caller holds the
// object's lock.
func (k *storedKind) noteVersion(key, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if version == "" {
		delete(k.mu.versions, key)
	} else {
		k.mu.versions[key] = version
	}
}

func (k *storedKind) version(key string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.versions[key]
}

// sync applies the state of the storage to the log.
func (k *storedKind) sync(ctx context.Context) error {
	k.syncing.Lock()
	defer k.syncing.Unlock()
	k.note(map[string]bool{})
	defer k.note(nil)
	there := map[string]bool{}
	for obj, err := range k.storage.List(ctx) {
		if err != nil {
			return err
		}
		there[keyOf(obj.GetNamespace(), obj.GetName())] = true
		if err := k.adopt(ctx, obj.GetNamespace(), obj.GetName(), obj); err != nil {
			return err
		}
	}
	if _, err := k.host.View.Fresh(ctx); err != nil {
		return err
	}
	var gone []*watchcache.Entry
	k.host.View.Collection(k.prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if !there[e.Key()] {
			gone = append(gone, e)
		}
		return true
	})
	for _, e := range gone {
		if err := k.adopt(ctx, e.Namespace, e.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

func (k *storedKind) note(written map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.written = written
}

// adopt applies one object to the log, nil if it is gone, unless it was written since the list began.
func (k *storedKind) adopt(ctx context.Context, namespace, name string, obj *unstructured.Unstructured) error {
	key := keyOf(namespace, name)
	defer k.lock(key)()
	k.mu.Lock()
	written := k.mu.written[key]
	k.mu.Unlock()
	if written {
		return nil
	}
	return k.adoptLocked(ctx, namespace, name, obj)
}

// adoptLocked is adopt with the object's lock held. It skips an object of another kind, and keeps the log's state of
// it: one bad object must not prevent the others from being served.
func (k *storedKind) adoptLocked(ctx context.Context, namespace, name string, obj *unstructured.Unstructured) error {
	call, err := k.host.Verbs.Call(k.resource, namespace, name, verb.ServerUser())
	if err != nil {
		return err
	}
	version := ""
	var content object.Object
	if obj != nil {
		version, content = obj.GetResourceVersion(), runtime.DeepCopyJSON(obj.Object)
	}
	err = adopt(ctx, k.host, call, content)
	if errors.Is(err, errNotOfKind) {
		k.host.Log.Warn("a storage has an invalid object; it is not served until it is corrected in the storage",
			"resource", k.resource.Resource, "name", keyOf(namespace, name), "error", err)
		return nil
	}
	if err == nil {
		k.noteVersion(keyOf(namespace, name), version)
	}
	return err
}

func decoded(raw []byte) (*unstructured.Unstructured, error) {
	if raw == nil {
		return nil, nil
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	obj, _ := v.(object.Object)
	return &unstructured.Unstructured{Object: obj}, nil
}

// keyOf is the key of an object in its collection.
func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
