package watchcache

import (
	"bytes"
	"slices"

	"github.com/bowsprit/bowsprit/internal/storage/delta"
)

const (
	// alikeAbove is the size from which one of many objects that are alike is worth packing, in bytes.
	alikeAbove = 400
	// alikeEnough is the part of its size that a small object may have when it is packed, and alikeLarge that of a
	// large one; what has more is put into the base for those that come. Between the two alikeMost bytes are enough.
	alikeEnough, alikeLarge, alikeMost = 4, 8, 256
	// renewEvery is how many objects are packed against a base before there may be another, times the number of bases
	// before it, up to renewMost: what is told against a base keeps it.
	renewEvery, renewMost = 64, 16
	// baseBits is for the table of a base: 8 KB, of which there are many.
	baseBits = 12
)

// family packs the objects of a collection that are alike, such as events, or the pods of many sets: against those
// that came before and were not like others. What follows the compressor is its
// goroutine's.
type family struct {
	compressor *compressor

	base     *delta.Base
	renewals int
	since    int // objects packed against base
	buffer   []byte
}

func (f *family) pack(raw []byte) *packed {
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

// enough returns how many bytes of size may be left of an object. The states of a simulated pod take 165 bytes in the
// mean, and 398 if all of them are told against the first.
func enough(size int) int { return max(size/alikeLarge, min(size/alikeEnough, alikeMost)) }

// renew puts an object into the base; if there is no room, a base begins with it.
func (f *family) renew(raw []byte) {
	text := bytes.Clone(raw)
	if f.base != nil && len(f.base.Text())+len(raw) <= delta.Most {
		text = slices.Concat(f.base.Text(), raw)
	}
	f.base = delta.New(text, baseBits)
	f.renewals++
	f.since = 0
}
