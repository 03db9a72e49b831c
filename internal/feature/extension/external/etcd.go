// Package external provides storages of kinds outside of the server: an etcd, and another API server.
//
// Both stream changes, and use revisions to detect conflicts. Their methods are safe for concurrent use.
package external

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kinds "github.com/bowsprit/bowsprit/internal/feature/extension"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// Etcd keeps the objects of a kind in an etcd, each under its namespace and name below a prefix, as JSON.
type Etcd struct {
	config store.Config

	mu     sync.Mutex
	store  *store.Store // nil until it is first used
	closed bool
}

// NewEtcd returns the storage. It connects at its first use.
func NewEtcd(c store.Config) *Etcd { return &Etcd{config: c} }

var _ kinds.Watcher = (*Etcd)(nil)

// open returns the store, connected.
func (e *Etcd) open(ctx context.Context) (*store.Store, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, store.ErrClosed
	}
	if e.store == nil {
		s, err := store.Open(ctx, e.config)
		if err != nil {
			return nil, err
		}
		e.store = s
	}
	return e.store, nil
}

// Close ends the connection.
func (e *Etcd) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.store == nil {
		return nil
	}
	return e.store.Close()
}

// page is how many objects are read at a time.
const page = 500

// List implements kinds.Storage.
func (e *Etcd) List(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		s, err := e.open(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for o := (store.RangeOptions{Limit: page}); ; {
			r, err := s.Range(ctx, o)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, record := range r.Records {
				if obj, err := decode(record); !yield(obj, err) || err != nil {
					return
				}
			}
			if !r.More {
				return
			}
			o.After, o.Revision = r.Records[len(r.Records)-1].Key, r.Revision
		}
	}
}

// Get implements kinds.Watcher.
func (e *Etcd) Get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	s, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	record, err := s.Get(ctx, key(namespace, name))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(record)
}

// Write implements kinds.Storage.
func (e *Etcd) Write(ctx context.Context, old, now *unstructured.Unstructured) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	var revision int64
	if old != nil {
		if revision, err = strconv.ParseInt(old.GetResourceVersion(), 10, 64); err != nil {
			return kinds.ErrConflict // its state is unknown
		}
	}
	switch {
	case now == nil:
		_, err = s.Delete(ctx, key(old.GetNamespace(), old.GetName()), revision)
	case old == nil:
		raw := codec.EncodeStored(now.Object).JSON
		revision, err = s.Create(ctx, key(now.GetNamespace(), now.GetName()), raw)
	default:
		raw := codec.EncodeStored(now.Object).JSON
		revision, err = s.Update(ctx, key(now.GetNamespace(), now.GetName()), raw, revision)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return kinds.ErrConflict
	}
	if err == nil && now != nil {
		now.SetResourceVersion(strconv.FormatInt(revision, 10))
	}
	return err
}

// Changes implements kinds.Watcher.
func (e *Etcd) Changes(ctx context.Context) (iter.Seq2[types.NamespacedName, error], error) {
	s, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	revision, err := s.Revision(ctx)
	if err != nil {
		return nil, err
	}
	return func(yield func(types.NamespacedName, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for batch := range s.Watch(ctx, revision+1) {
			if batch.Err != nil {
				yield(types.NamespacedName{}, batch.Err)
				return
			}
			for _, event := range batch.Events {
				if !yield(nameOf(event.Key), nil) {
					return
				}
			}
		}
	}, nil
}

// key is where an object is below the prefix.
func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func nameOf(key string) types.NamespacedName {
	if namespace, name, ok := strings.Cut(key, "/"); ok {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Name: key}
}

// decode decodes the object of a record and checks it against the record's key.
func decode(record store.Record) (*unstructured.Unstructured, error) {
	v, err := codec.DecodeJSON(record.Value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", record.Key, err)
	}
	content, ok := v.(object.Object)
	if !ok {
		return nil, fmt.Errorf("%s: not an object", record.Key)
	}
	obj := &unstructured.Unstructured{Object: content}
	name := nameOf(record.Key)
	obj.SetNamespace(name.Namespace)
	obj.SetName(name.Name)
	obj.SetResourceVersion(strconv.FormatInt(record.Revision, 10))
	return obj, nil
}
