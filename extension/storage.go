package extension

import (
	"context"
	"errors"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kinds "github.com/bowsprit/bowsprit/internal/feature/extension"
)

// Storage stores the objects of a kind. It is their source of truth. The server keeps a copy, in the order in which it
// receives changes, and serves all reads and watches from it. So a Storage needs no revisions, no watches and no
// selectors.
//
// A write goes to the Storage first, and fails if the Storage refuses it. One server at a time writes through a
// Storage. The server finds other programs' changes by Kind.Poll, or at once if the Storage is a Watcher. If the
// Storage detects that another program has changed an object meanwhile, it refuses a write of the object with
// ErrConflict. The server closes a Storage that is an io.Closer when it stops.
type Storage interface {
	// List returns all objects, of all namespaces, in any order. They have at least metadata.name, and
	// metadata.namespace if the kind has namespaces. The server fills in missing values of apiVersion, kind, uid,
	// creationTimestamp, generation and managedFields, and keeps them as long as it has the object.
	List(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error]
	// Write makes a change durable: a new object if old is nil, a deletion if now is nil. It returns when the change is
	// durable, or an error, and then nothing has changed. It changes neither object, except for
	// metadata.resourceVersion, which belongs to the Storage: the next write of the object passes in old the value that
	// List or Get has set in the object, or Write in now. So a Storage that counts versions can use it to detect
	// changes by other programs. Clients never see it.
	Write(ctx context.Context, old, now *unstructured.Unstructured) error
}

// Watcher is a Storage that reports changes: the server serves other programs' writes at once, without Kind.Poll.
type Watcher interface {
	Storage
	// Get returns the current state of one object, or nil.
	Get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
	// Changes starts to record changes and then returns. The sequence yields the objects created, changed or deleted
	// since, until ctx ends. It may yield an object once for several changes. The server lists everything after Changes
	// has returned, and then gets each object of the sequence. After an error, or the end of the sequence, it starts
	// again.
	Changes(ctx context.Context) (iter.Seq2[types.NamespacedName, error], error)
}

// ErrConflict is the error of Write if the stored object differs from old. The client gets a conflict (409), after the
// server has listed the storage again.
var ErrConflict = kinds.ErrConflict

// ReadOnly returns a Storage of objects from a function, such as the contents of another system. Clients can only get,
// list and watch them; the kind needs a Poll.
func ReadOnly(list func(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error]) Storage {
	return readOnly{list}
}

// readOnly is a Storage without writes.
type readOnly struct {
	list func(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error]
}

// List implements Storage.
func (r readOnly) List(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	return r.list(ctx)
}

// Write implements Storage. No client's request leads here.
func (r readOnly) Write(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) error {
	return errors.New("these objects cannot be changed")
}
