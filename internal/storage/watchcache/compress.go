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

	"github.com/bowsprit/bowsprit/internal/request/reuse"
	"github.com/bowsprit/bowsprit/internal/storage/delta"
)

const (
	// packAbove is the minimum size in bytes of an object worth compressing, in a packed collection.
	packAbove = 4 << 10
	// packEvery is the interval of the compressor's rounds; it compresses entries that were not read for a whole round.
	// alikeEvery is the interval for packed kinds, which are large and fast to unpack.
	packEvery  = 10 * time.Second
	alikeEvery = 250 * time.Millisecond
	// giveBack is the number of bytes newly packed in one round that triggers returning memory to the system, for
	// instance after a start with thousands of definitions. The runtime alone takes minutes, or never does it.
	giveBack = 16 << 20
)

// compressed holds the bytes of an entry, compressed while they are not read. It serves definitions, which are large,
// numerous and read only when a schema is compiled or a client lists them, and kinds with many similar objects.
// Reading the bytes keeps them unpacked until they are cold again.
type compressed struct {
	packer *deltaPacker           // &compressor.alone if packed by itself
	raw    atomic.Pointer[[]byte] // nil while packed
	packed atomic.Pointer[packed] // nil before the first packing; kept afterwards
	size   uint32                 // of the bytes
	warm   atomic.Bool            // read in this round
}

// packed holds compressed bytes: encoded against a base, or standalone if base is nil.
type packed struct {
	data []byte
	base *delta.Base
}

var inflaters = reuse.New(func() io.Reader { return flate.NewReader(nil) }, func(r io.Reader) {
	_ = r.(flate.Resetter).Reset(strings.NewReader(""), nil)
})

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
		p.packer.compressor.add(e)
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
			panic(err) // our own output, in memory
		}
		return raw
	}
	raw := make([]byte, p.size)
	r := inflaters.Get()
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

// compressor compresses cold entries. It runs in View.Run's goroutine.
type compressor struct {
	prefixes []string                // collections with entries packed one by one
	packers  map[string]*deltaPacker // collections with similar entries, by prefix
	alone    deltaPacker             // for entries packed one by one

	mu           sync.Mutex
	fresh, alike []*Entry // unpacked since the last round
}

// newCompressor returns a compressor for the collections in prefixes, with entries packed one by one, and in alike,
// with entries packed against each other.
func newCompressor(prefixes, alike []string) *compressor {
	p := &compressor{prefixes: prefixes, packers: map[string]*deltaPacker{}}
	p.alone.compressor = p
	for _, prefix := range alike {
		p.packers[prefix] = &deltaPacker{compressor: p}
	}
	return p
}

// take hands an entry of the collection under prefix to the compressor, before the entry is published. prev is the
// entry that it replaces, or nil.
func (p *compressor) take(prefix string, e, prev *Entry) {
	of := p.packers[prefix]
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
	e.compressed = &compressed{packer: of, size: uint32(len(raw))}
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
	if e.compressed.packer != &p.alone {
		p.alike = append(p.alike, e)
	} else {
		p.fresh = append(p.fresh, e)
	}
}

func (p *compressor) run(ctx context.Context) {
	if len(p.prefixes)+len(p.packers) == 0 {
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

// round packs the entries in open and since that have not been read since the last round. It returns the others.
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
			if raw := *c.raw.Load(); c.packer != &p.alone {
				now = c.packer.pack(raw)
			} else {
				now = &packed{data: w.pack(raw)}
			}
			c.packed.Store(now)
			saved += int(c.size) - len(now.data)
		}
		c.raw.Store(nil)
		e.encoded.forget() // usually the same bytes
		if c.packer == &p.alone {
			e.fields.Store(nil) // packed against a base, they are small compared with the cost of finding them again
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
