package extension

import (
	"context"
	"errors"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kinds "github.com/bowsprit/bowsprit/internal/feature/extension"
)

// Storage keeps the objects of a kind. It is the truth about them: the server has them too, in the order in which it
// has learned of changes, and answers all reads and watches from there. So a Storage needs no revisions, no watches and
// no selectors.
//
// A write goes to the Storage first, and is refused if that refuses it. One server at a time writes through a Storage.
// What others change behind its back it learns of by Kind.Poll, or at once if the Storage is a Teller; a write of an
// object that others have changed meanwhile is refused by ErrConflict, if the Storage can tell. A Storage that is an
// io.Closer is closed when the server stops.
type Storage interface {
	// List returns all objects, of all namespaces, in any order. They have at least metadata.name, and
	// metadata.namespace if the kind has namespaces. What is missing of apiVersion, kind, uid, creationTimestamp,
	// generation and managedFields is filled in, and stays the same as long as the server has the object.
	List(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error]
	// Write makes a change durable: a new object if old is nil, a deletion if now is nil. It returns when the change is
	// there, or an error, and then nothing has changed. It changes neither object, but for metadata.resourceVersion,
	// which is the Storage's to use: what List or Get has set in the object, or Write in now, is in old when the object
	// is written next. So a Storage that counts versions can tell by it that others have changed the object. Clients
	// never see it.
	Write(ctx context.Context, old, now *unstructured.Unstructured) error
}

// Teller is a Storage that tells of changes: what others write to it is served at once, without Kind.Poll.
type Teller interface {
	Storage
	// Get returns one object as it is now, nil if there is none.
	Get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
	// Changes begins to note changes, and returns then; the sequence tells which objects have been made, changed or
	// deleted since, until ctx ends. Of several changes of an object it may tell once. The server lists everything
	// after Changes has returned, and then gets each object of which it is told. After an error, or an end of the
	// sequence, it begins anew.
	Changes(ctx context.Context) (iter.Seq2[types.NamespacedName, error], error)
}

// ErrConflict is what a Storage returns from Write if the object is not there as old says. The client gets a conflict
// (409), and the server has listed the storage again by then.
var ErrConflict = kinds.ErrConflict

// ReadOnly returns a Storage of objects that a function finds out, such as what another system has. Clients get, list
// and watch them, and change nothing; the kind needs a Poll.
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
