package store

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// The tests of this package, which open backends, stand in another one: the backends import this package.

// Tick runs a round of compaction.
func (s *Store) Tick(ctx context.Context) error { return s.tick(ctx) }

// LookAtFormat looks at the format mark.
func (s *Store) LookAtFormat(ctx context.Context) error { return s.lookAtFormat(ctx) }

// WithPrefix returns a store on the same backend with another prefix.
func (s *Store) WithPrefix(prefix string) *Store {
	return &Store{
		prefix: prefix, backend: s.backend, shared: s.shared, log: s.log, leases: newLeases(),
		background: background{done: make(chan struct{})},
	}
}

// Put writes a key as another program would, without a condition. The key is whole.
func (s *Store) Put(ctx context.Context, key, value string) error {
	_, err := s.backend.Commit(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{put(key, []byte(value), 0)}})
	return err
}

// Remove deletes a key, as Put writes it.
func (s *Store) Remove(ctx context.Context, key string) error {
	_, err := s.backend.Commit(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{remove(key)}})
	return err
}

// Whole reads a key, as Put writes it; nil if it does not exist.
func (s *Store) Whole(ctx context.Context, key string) (*mvccpb.KeyValue, error) {
	found, err := s.backend.Range(ctx, Span{Start: []byte(key)})
	if err != nil || len(found.Keys) == 0 {
		return nil, err
	}
	return found.Keys[0], nil
}
