package watchcache

import (
	"bytes"
	"slices"

	"github.com/bowsprit/bowsprit/internal/storage/delta"
)

const (
	// alikeAbove is the minimum size in bytes of an object worth packing against a base.
	alikeAbove = 400
	// alikeEnough and alikeLarge are the expected compression factors of small and large objects; an object that
	// compresses worse is added to the base. In between, alikeMost bytes are acceptable.
	alikeEnough, alikeLarge, alikeMost = 4, 8, 256
	// renewEvery is the number of objects packed against a base before it may be replaced, times the number of earlier
	// bases, up to renewMost: packed objects keep their base in memory.
	renewEvery, renewMost = 64, 16
	// baseBits sizes the table of a base: 8 KB, since there are many.
	baseBits = 12
)

// deltaPacker packs similar objects of a collection, such as events, or the pods of many sets, against a base: earlier
// objects that did not compress well. The fields after compressor belong to its goroutine.
type deltaPacker struct {
	compressor *compressor

	base     *delta.Base
	renewals int
	since    int // number of objects packed against base
	buffer   []byte
}

func (f *deltaPacker) pack(raw []byte) *packed {
	if f.base != nil {
		f.since++
		f.buffer = f.base.Pack(f.buffer[:0], raw)
	}
	if f.base == nil ||
		len(f.buffer) > enough(len(raw)) && f.since >= renewEvery*min(f.renewals, renewMost) {
		f.renew(raw)
		f.buffer = f.base.Pack(f.buffer[:0], raw)
	}
	return &packed{data: bytes.Clone(f.buffer), base: f.base}
}

// enough returns the acceptable packed size of an object of size bytes. The states of a simulated pod take 165 bytes on
// average, and 398 if all are encoded against the first.
func enough(size int) int { return max(size/alikeLarge, min(size/alikeEnough, alikeMost)) }

// renew adds an object to the base, or starts a new base with it if the base is full.
func (f *deltaPacker) renew(raw []byte) {
	text := bytes.Clone(raw)
	if f.base != nil && len(f.base.Text())+len(raw) <= delta.Most {
		text = slices.Concat(f.base.Text(), raw)
	}
	f.base = delta.New(text, baseBits)
	f.renewals++
	f.since = 0
}
