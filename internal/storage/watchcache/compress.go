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
)

const (
	// packAbove is the size from which an object of a packed collection is worth compressing, in bytes.
	packAbove = 4 << 10
	// packEvery is how often the compressor looks; an entry that has not been read for a whole round is compressed.
	packEvery = 10 * time.Second
	// giveBack is how many bytes must have been packed for the first time in one round for the memory to be given back
	// to the system at once, as after a start with thousands of definitions. The runtime by itself takes minutes, or
	// never does it.
	giveBack = 16 << 20
)

// compressed holds the bytes of an entry that are compressed while they are not read: definitions, which are large,
// many, and read when a schema is compiled or a client lists them. What is read again is there again until it is cold.
type compressed struct {
	compressor *compressor
	size       int                    // of the bytes
	raw        atomic.Pointer[[]byte] // nil while they are packed
	packed     atomic.Pointer[[]byte] // nil before the first time; then it stays
	warm       atomic.Bool            // read in this round
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
		p.compressor.add(e)
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
	raw := make([]byte, p.size)
	r := inflaters.Get().(io.Reader)
	err := r.(flate.Resetter).Reset(bytes.NewReader(*p.packed.Load()), nil)
	if err == nil {
		_, err = io.ReadFull(r, raw)
	}
	if err != nil {
		panic(err) // of our own making, in memory
	}
	inflaters.Put(r)
	return raw
}

// compressor compresses what is cold. Its goroutine is View.Run's.
type compressor struct {
	prefixes []string // of the collections whose entries are packed

	mu    sync.Mutex
	fresh []*Entry // opened since the last round
}

// take puts an entry of the collection under prefix into the compressor's care, before anybody else has it.
func (p *compressor) take(prefix string, e *Entry) {
	if len(e.json) < packAbove || !slices.Contains(p.prefixes, prefix) {
		return
	}
	raw := e.json
	e.compressed = &compressed{compressor: p, size: len(raw)}
	e.compressed.raw.Store(&raw)
	e.compressed.warm.Store(true)
	e.json = nil
	e.UID = strings.Clone(e.UID) // it shared the bytes
	p.add(e)
}

func (p *compressor) add(e *Entry) {
	p.mu.Lock()
	p.fresh = append(p.fresh, e)
	p.mu.Unlock()
}

func (p *compressor) run(ctx context.Context) {
	if len(p.prefixes) == 0 {
		return
	}
	tick := time.NewTicker(packEvery)
	defer tick.Stop()
	var open []*Entry
	for {
		select {
		case <-tick.C:
			open = p.round(open)
		case <-ctx.Done():
			return
		}
	}
}

// round packs those of open, and of what has been opened since, that have not been read since the last round. It
// returns the others.
func (p *compressor) round(open []*Entry) []*Entry {
	p.mu.Lock()
	open = append(open, p.fresh...)
	p.fresh = nil
	p.mu.Unlock()
	var w *flate.Writer // large, and most rounds need none
	saved := 0
	open = slices.DeleteFunc(open, func(e *Entry) bool {
		if e.compressed.warm.Swap(false) {
			return false
		}
		if e.compressed.packed.Load() == nil {
			var b bytes.Buffer
			if w == nil {
				w, _ = flate.NewWriter(&b, flate.BestSpeed) // the level is a constant
			} else {
				w.Reset(&b)
			}
			_, _ = w.Write(*e.compressed.raw.Load()) // into memory
			_ = w.Close()
			packed := bytes.Clone(b.Bytes())
			e.compressed.packed.Store(&packed)
			saved += e.compressed.size - len(packed)
		}
		e.compressed.raw.Store(nil)
		e.encoded.forget() // mostly the same bytes
		e.fields.Store(nil)
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
