package store

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Record is a key with its value.
type Record struct {
	Key      string // relative to the prefix
	Value    []byte // owned by the receiver
	Revision int64  // of the last write (etcd's mod revision)
	Created  int64  // revision of the creation
}

// Get returns the record of key at some moment after the call began. It returns ErrNotFound if the key does not exist.
func (s *Store) Get(ctx context.Context, key string) (Record, error) {
	ctx, done := s.begin(ctx, "get", key)
	found, err := s.read(ctx, Span{Start: []byte(s.prefix + key)})
	done.end(ctx, err)
	if err == nil && len(found.Keys) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Record{}, fmt.Errorf("get %s: %w", key, err)
	}
	return s.record(found.Keys[0]), nil
}

// RangeOptions select the records of Range.
type RangeOptions struct {
	// Prefix of the keys, for example "stable.example.com/crontabs/"; empty means all.
	Prefix string
	// After is the last key of the page before, exclusive; empty starts at the beginning. It lies under Prefix.
	After string
	// Limit is the largest number of records to return; 0 means no limit.
	Limit int
	// Revision to read at; 0 means now, linearizably.
	Revision int64
}

// Range is a page of records, sorted by key.
type Range struct {
	Records  []Record
	Revision int64 // revision of the page, and for reading the next one
	More     bool  // records follow
}

// Range returns the records with keys that begin with o.Prefix. It returns ErrCompacted if o.Revision is too old,
// ErrFuture if it has not been reached.
func (s *Store) Range(ctx context.Context, o RangeOptions) (Range, error) {
	start := []byte(s.prefix + o.Prefix)
	end := []byte(clientv3.GetPrefixRangeEnd(string(start)))
	if o.After != "" {
		start = append([]byte(s.prefix+o.After), 0)
	}
	ctx, done := s.begin(ctx, "list", o.Prefix)
	found, err := s.read(ctx, Span{Start: start, End: end, Limit: int64(o.Limit), Revision: o.Revision})
	done.end(ctx, err)
	if err != nil {
		return Range{}, fmt.Errorf("range %s: %w", o.Prefix, err)
	}
	r := Range{Records: make([]Record, len(found.Keys)), Revision: found.Revision, More: found.More}
	if o.Revision > 0 {
		r.Revision = o.Revision
	}
	for i, kv := range found.Keys {
		r.Records[i] = s.record(kv)
	}
	return r, nil
}

func (s *Store) read(ctx context.Context, of Span) (Found, error) {
	if err := s.usable(ctx); err != nil {
		return Found{}, err
	}
	return s.backend.Range(ctx, of)
}

func (s *Store) record(kv *mvccpb.KeyValue) Record {
	return Record{
		Key: string(kv.Key[len(s.prefix):]), Value: kv.Value, Revision: kv.ModRevision, Created: kv.CreateRevision,
	}
}

// Revision returns the store's revision at a moment after the call began: every write that was acknowledged before the
// call, by any process, is at or below it.
func (s *Store) Revision(ctx context.Context) (int64, error) { return s.backend.Revision(ctx) }
