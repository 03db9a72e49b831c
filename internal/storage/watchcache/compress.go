package watchcache

import (
	"bytes"
	"compress/flate"
	"context"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/delta"
)

const (
	// packAbove is the size from which an object of a packed collection is worth compressing, in bytes.
	packAbove = 4 << 10
	// packEvery is how often the compressor looks; an entry that has not been read for a whole round is compressed.
	// alikeEvery is that for what is alike: there is much of it when there is any, and it is unpacked in no time.
	packEvery  = 10 * time.Second
	alikeEvery = 250 * time.Millisecond
	// giveBack is how many bytes must have been packed for the first time in one round for the memory to be given back
	// to the system at once, as after a start with thousands of definitions. The runtime by itself takes minutes, or
	// never does it.
	giveBack = 16 << 20
)

// compressed holds the bytes of an entry that are compressed while they are not read: definitions, which are large,
// many, and read when a schema is compiled or a client lists them, and objects that are alike and many. What is read
// again is there again until it is cold.
type compressed struct {
	family *family                // the compressor's alone if it is packed by itself
	raw    atomic.Pointer[[]byte] // nil while they are packed
	packed atomic.Pointer[packed] // nil before the first time; then it stays
	size   uint32                 // of the bytes
	warm   atomic.Bool            // read in this round
}

// packed are compressed bytes: told against a base, or by themselves if that is nil.
type packed struct {
	data []byte
	base *delta.Base
}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// open returns the bytes, from any goroutine.
func (p *compressed) open(e *Entry) []byte {
	if !p.warm.Load() {
		p.warm.Store(true)
	}
	if raw := p.raw.Load(); raw != nil {
		return *raw
	}
	raw := p.unpack()
	if p.raw.CompareAndSwap(nil, &raw) {
		p.family.compressor.add(e)
	}
	return raw
}

// peek returns the bytes and leaves them as they are: packed, if they were.
func (p *compressed) peek() []byte {
	if raw := p.raw.Load(); raw != nil {
		return *raw
	}
	return p.unpack()
}

func (p *compressed) unpack() []byte {
	from := p.packed.Load()
	if from.base != nil {
		raw, err := from.base.Unpack(from.data, int(p.size))
		if err != nil {
			panic(err) // of our own making, in memory
		}
		return raw
	}
	raw := make([]byte, p.size)
	r := inflaters.Get().(io.Reader)
	err := r.(flate.Resetter).Reset(bytes.NewReader(from.data), nil)
	if err == nil {
		_, err = io.ReadFull(r, raw)
	}
	if err != nil {
		panic(err) // as above
	}
	inflaters.Put(r)
	return raw
}

// compressor compresses what is cold. Its goroutine is View.Run's.
type compressor struct {
	prefixes []string           // of the collections whose entries are packed, each by itself
	families map[string]*family // of the collections whose entries are alike, by prefix
	alone    family             // of the entries that are not

	mu           sync.Mutex
	fresh, alike []*Entry // opened since the last round
}

// newCompressor returns a compressor of the collections under the prefixes, packed each by itself or as those alike.
func newCompressor(prefixes, alike []string) *compressor {
	p := &compressor{prefixes: prefixes, families: map[string]*family{}}
	p.alone.compressor = p
	for _, prefix := range alike {
		p.families[prefix] = &family{compressor: p}
	}
	return p
}

// take puts an entry of the collection under prefix into the compressor's care, before anybody else has it. prev is
// what the collection has in its place; it may be nil.
func (p *compressor) take(prefix string, e, prev *Entry) {
	of := p.families[prefix]
	switch {
	case of != nil && len(e.json) >= alikeAbove && len(e.json) <= delta.Most:
	case of == nil && len(e.json) >= packAbove && slices.Contains(p.prefixes, prefix):
	default:
		return
	}
	if of == nil {
		of = &p.alone
	}
	raw := e.json
	e.compressed = &compressed{family: of, size: uint32(len(raw))}
	e.compressed.raw.Store(&raw)
	e.compressed.warm.Store(true)
	e.json = nil
	if prev != nil && prev.compressed != nil && prev.UID == e.UID {
		e.UID = prev.UID
	} else {
		e.UID = strings.Clone(e.UID) // it shared the bytes
	}
	p.add(e)
}

func (p *compressor) add(e *Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.compressed.family != &p.alone {
		p.alike = append(p.alike, e)
	} else {
		p.fresh = append(p.fresh, e)
	}
}

func (p *compressor) run(ctx context.Context) {
	if len(p.prefixes)+len(p.families) == 0 {
		return
	}
	tick, often := time.NewTicker(packEvery), time.NewTicker(alikeEvery)
	defer tick.Stop()
	defer often.Stop()
	var open, alike []*Entry
	for {
		select {
		case <-tick.C:
			open = p.round(open, &p.fresh)
		case <-often.C:
			alike = p.round(alike, &p.alike)
		case <-ctx.Done():
			return
		}
	}
}

// round packs those of open, and of what has been opened since, that have not been read since the last round. It
// returns the others.
func (p *compressor) round(open []*Entry, since *[]*Entry) []*Entry {
	p.mu.Lock()
	open = append(open, *since...)
	*since = nil
	p.mu.Unlock()
	var w deflater
	saved := 0
	open = slices.DeleteFunc(open, func(e *Entry) bool {
		c := e.compressed
		if c.warm.Swap(false) {
			return false
		}
		if c.packed.Load() == nil {
			var now *packed
			if raw := *c.raw.Load(); c.family != &p.alone {
				now = c.family.pack(raw)
			} else {
				now = &packed{data: w.pack(raw)}
			}
			c.packed.Store(now)
			saved += int(c.size) - len(now.data)
		}
		c.raw.Store(nil)
		e.encoded.forget() // mostly the same bytes
		if c.family == &p.alone {
			e.fields.Store(nil) // else they are small beside what it takes to find them again
		}
		return true
	})
	if saved >= giveBack {
		debug.FreeOSMemory()
	}
	if len(open) == 0 {
		return nil
	}
	return open
}

// deflater packs objects by themselves. Its zero value is ready.
type deflater struct{ w *flate.Writer } // large, and most rounds need none

func (d *deflater) pack(raw []byte) []byte {
	var b bytes.Buffer
	if d.w == nil {
		d.w, _ = flate.NewWriter(&b, flate.BestSpeed) // the level is a constant
	} else {
		d.w.Reset(&b)
	}
	_, _ = d.w.Write(raw) // into memory
	_ = d.w.Close()
	return bytes.Clone(b.Bytes())
}
