// Package presence lets servers that share an etcd find each other by keys that expire, as kube-apiservers do: the key
// of a terminated server is gone after some seconds, however it ended.
//
// The values are Endpoints, which are not objects of the API. A kube-apiserver that shares the etcd writes them too,
// and reads this server's, in JSON or protobuf.
package presence

import (
	"context"
	"errors"
	"time"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Where the keys are; kube-apiserver's prefixes.
const (
	// Endpoints are the addresses of the service "kubernetes"; a key is an address.
	Endpoints = "masterleases"
	// Peers are where servers reach each other; a key is the name of a server's Lease.
	Peers = "peerserverleases"
)

const (
	// Every is the renewal interval of a key, signedFor its duration, as in Kubernetes.
	Every     = 10 * time.Second
	signedFor = 15 * time.Second
	// withdrawTimeout bounds the wait for etcd at the end of a server; the key expires anyway.
	withdrawTimeout = 3 * time.Second
)

// Stored returns the storage format of the values for their readers: the resource of Endpoints among resources.
func Stored(resources []*catalog.Resource) []*catalog.Resource {
	var out []*catalog.Resource
	for _, r := range resources {
		if r.Group == "" && r.Plural == "endpoints" {
			for _, prefix := range []string{Endpoints, Peers} {
				out = append(out, &catalog.Resource{
					Plural: r.Plural, Kind: r.Kind, Versions: r.Versions, Storage: r.Storage, Prefix: prefix,
				})
			}
		}
	}
	return out
}

// Key is the key of a server.
type Key struct {
	View  *watchcache.View
	Store *store.Store
	// Storing encodes the value; nil is JSON.
	Storing *convert.Storing
	// Prefix is Endpoints or Peers.
	Prefix, Name string
}

// Sign writes the key, an Endpoints with the given subsets. It does nothing on a server with an etcd of its own, which
// is the only one.
func (k Key) Sign(ctx context.Context, labels object.Object, subsets ...any) error {
	if !k.Store.Shared() {
		return nil
	}
	if _, err := k.View.Fresh(ctx); err != nil {
		return err
	}
	meta := object.Object{}
	if len(labels) > 0 {
		meta["labels"] = labels
	}
	value := k.Storing.EncodeBelow(k.Prefix, codec.AppendJSON(nil, object.Object{
		"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets,
	}))
	w, err := k.Store.With(store.Options{TTL: signedFor}), error(nil)
	if e := k.entry(); e != nil {
		_, err = w.Update(ctx, k.key(), value, e.Revision)
	} else {
		_, err = w.Create(ctx, k.key(), value)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return nil // a server of the same name has just done the same
	}
	return err
}

// Withdraw deletes the key, and reports whether it existed.
func (k Key) Withdraw(ctx context.Context) (bool, error) {
	e := k.entry()
	if e == nil || !k.Store.Shared() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, withdrawTimeout)
	defer cancel()
	_, err := k.Store.Delete(ctx, k.key(), e.Revision)
	return err == nil, err
}

func (k Key) key() string { return k.Prefix + "/" + k.Name }

func (k Key) entry() *watchcache.Entry { return k.View.Collection(k.Prefix).Snapshot().Get("", k.Name) }
