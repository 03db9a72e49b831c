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
	kvs, _, _, err := s.read(ctx, []byte(s.prefix+key), nil, 0, 0)
	done.end(ctx, err)
	if err == nil && len(kvs) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Record{}, fmt.Errorf("get %s: %w", key, err)
	}
	return s.record(kvs[0]), nil
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
	kvs, more, rev, err := s.read(ctx, start, end, int64(o.Limit), o.Revision)
	done.end(ctx, err)
	if err != nil {
		return Range{}, fmt.Errorf("range %s: %w", o.Prefix, err)
	}
	r := Range{Records: make([]Record, len(kvs)), Revision: rev, More: more}
	if o.Revision > 0 {
		r.Revision = o.Revision
	}
	for i, kv := range kvs {
		r.Records[i] = s.record(kv)
	}
	return r, nil
}

func (s *Store) read(ctx context.Context, start, end []byte, limit, rev int64) ([]*mvccpb.KeyValue, bool, int64,
	error) {
	if err := s.usable(ctx); err != nil {
		return nil, false, 0, err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.backend.read(ctx, start, end, limit, rev)
}

func (s *Store) record(kv *mvccpb.KeyValue) Record {
	return Record{
		Key: string(kv.Key[len(s.prefix):]), Value: kv.Value, Revision: kv.ModRevision, Created: kv.CreateRevision,
	}
}

// Revision returns the store's revision at a moment after the call began: every write that was acknowledged before the
// call, by any process, is at or below it.
func (s *Store) Revision(ctx context.Context) (int64, error) { return s.backend.revision(ctx) }
