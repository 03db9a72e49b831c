package selector

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"k8s.io/apiserver/pkg/sharding"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Shard is the part of a collection whose objects have the hash of their uid, or of their namespace, in some ranges:
// what a client asks for that shares the work on a kind with others (KEP-5866). It is immutable.
type Shard struct {
	byNamespace bool
	ranges      []hashRange // in order, with gaps between them
	name        string      // of what is kept, however it was asked for
	text        string
}

// hashRange has both its ends in it.
type hashRange struct{ first, last uint64 }

// ParseShard reads the query parameter shardSelector. Errors have kube-apiserver's texts, and are, as there, not the
// client's fault: it answers 500.
func ParseShard(text string) (*Shard, error) {
	parsed, err := sharding.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("invalid shard selector: %w", err)
	}
	s := &Shard{text: parsed.String()}
	for _, req := range parsed.Requirements() { // all of the same field
		s.byNamespace = req.Key == "object.metadata.namespace"
		r := hashRange{last: math.MaxUint64}
		if r.first, err = strconv.ParseUint(req.Start, 0, 64); err != nil {
			return nil, fmt.Errorf("invalid shard selector: %w", err)
		}
		if req.End != "0x10000000000000000" { // 2^64
			end, err := strconv.ParseUint(req.End, 0, 64)
			if err != nil {
				return nil, fmt.Errorf("invalid shard selector: %w", err)
			}
			r.last = end - 1
		}
		s.ranges = append(s.ranges, r)
	}
	s.ranges = joined(s.ranges)
	s.name = fmt.Sprint(s.byNamespace, s.ranges)
	return s, nil
}

// joined returns ranges in order, those that touch as one: a client may send some thousand.
func joined(ranges []hashRange) []hashRange {
	slices.SortFunc(ranges, func(a, b hashRange) int { return cmp.Compare(a.first, b.first) })
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && (out[n-1].last == math.MaxUint64 || r.first <= out[n-1].last+1) {
			out[n-1].last = max(out[n-1].last, r.last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// String returns the selector as lists of its objects repeat it, "" of nil, which is no shard.
func (s *Shard) String() string {
	if s == nil {
		return ""
	}
	return s.text
}

// Includes reports whether an entry is in the shard. One that cannot be read is in every shard of uids, because its own
// is not known.
func (s *Shard) Includes(e *watchcache.Entry) bool {
	if s == nil {
		return true
	}
	value := e.UID
	switch {
	case s.byNamespace:
		value = e.Namespace
	case value == "" && e.Unreadable() != nil:
		return true
	}
	h := hash(value)
	_, found := slices.BinarySearchFunc(s.ranges, h, func(r hashRange, h uint64) int {
		switch {
		case r.last < h:
			return -1
		case r.first > h:
			return 1
		}
		return 0
	})
	return found
}

// hash is FNV-1a in 64 bits, which clients compute too. hash/fnv would need memory for each call.
func hash(value string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(value) {
		h = (h ^ uint64(value[i])) * 1099511628211
	}
	return h
}

// shardIndex and shardNamespaceIndex are names of indexes: of a shard, and of its objects by namespace.
type (
	shardIndex          struct{ name string }
	shardNamespaceIndex struct{ name string }
)

// inShard is the value of what is in a shard, by its index.
const inShard = "1"

// index returns the index of the shard. It has the shard's objects alone, so it is the smaller the more shards there
// are.
func (s *Shard) index() (ix watchcache.Index, value string) {
	return watchcache.Index{Name: shardIndex{s.name}, Value: func(e *watchcache.Entry) string {
		if s.Includes(e) {
			return inShard
		}
		return ""
	}}, inShard
}

// concern returns by what a watch of the shard, in a namespace if it is not "", knows its events.
func (s *Shard) concern(namespace string) (ix watchcache.Index, value string) {
	if namespace == "" {
		return s.index()
	}
	return watchcache.Index{Name: shardNamespaceIndex{s.name}, Value: func(e *watchcache.Entry) string {
		if s.Includes(e) {
			return e.Namespace
		}
		return ""
	}}, namespace
}
