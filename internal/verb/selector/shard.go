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

// Shard is the part of a collection with hashes of the uid, or of the namespace, in certain ranges. Clients that divide
// the work on a kind each request a shard (KEP-5866). It is immutable.
type Shard struct {
	byNamespace bool
	ranges      []hashRange // in order, with gaps between them
	name        string      // identifies the part, however the client wrote it
	text        string
}

// hashRange includes both ends.
type hashRange struct{ first, last uint64 }

// ParseShard parses the query parameter shardSelector. Errors have kube-apiserver's texts and, as there, become a 500.
func ParseShard(text string) (*Shard, error) {
	parsed, err := sharding.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("invalid shard selector: %w", err)
	}
	s := &Shard{text: parsed.String()}
	for _, req := range parsed.Requirements() { // all on the same field
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

// joined sorts ranges and merges adjacent ones: a client may send thousands.
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

// String returns the selector as shown in the list's metadata, "" for nil.
func (s *Shard) String() string {
	if s == nil {
		return ""
	}
	return s.text
}

// Includes reports whether an entry is in the shard. An unreadable entry is in every shard by uid, because its uid is
// unknown.
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

// hash is 64-bit FNV-1a; clients compute the same hash. hash/fnv would allocate on each call.
func hash(value string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(value) {
		h = (h ^ uint64(value[i])) * 1099511628211
	}
	return h
}

// shardIndex and shardNamespaceIndex are names of indexes: the objects of a shard, and the same by namespace.
type (
	shardIndex          struct{ name string }
	shardNamespaceIndex struct{ name string }
)

// inShard is the index value of objects in the shard.
const inShard = "1"

// index returns the index of the shard. It holds only the shard's objects, so it shrinks as the number of shards grows.
func (s *Shard) index() (ix watchcache.Index, value string) {
	return watchcache.Index{Name: shardIndex{s.name}, Value: func(e *watchcache.Entry) string {
		if s.Includes(e) {
			return inShard
		}
		return ""
	}}, inShard
}

// concern returns the index and value for a watch of the shard, in a namespace unless that is "".
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
