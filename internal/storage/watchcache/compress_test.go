package watchcache

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/delta"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// packing is a view of n large objects that packs them.
func packing(t *testing.T, n int) (*View, *Collection) {
	t.Helper()
	v := New(nil, Options{Log: slog.New(slog.DiscardHandler), Pack: []string{"stable.example.com/widgets"}})
	for i := range n {
		rev := int64(i + 1)
		v.apply(store.WatchBatch{
			Revision: rev,
			Events: []store.Event{
				{
					Key:   fmt.Sprintf("stable.example.com/widgets/default/w%d", i),
					Value: realistic(fmt.Sprint("w", i), 20<<10), Revision: rev,
				},
			},
		})
	}
	return v, v.Collection("stable.example.com/widgets")
}

// TestPacking has entries go cold and be read again.
func TestPacking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v, c := packing(t, 10)
		small := "stable.example.com/widgets/default/small"
		v.apply(store.WatchBatch{Revision: 100, Events: []store.Event{
			{Key: small, Value: realistic("small", 500), Revision: 100},
			{Key: "a.b/cs/n/other", Value: realistic("other", 20<<10), Revision: 100},
		}})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { v.compressor.run(ctx) })
		want := map[*Entry][]byte{}
		for i := range 10 {
			e := c.Snapshot().Get("default", fmt.Sprint("w", i))
			want[e] = bytes.Clone(e.JSON())
		}
		if e := c.Snapshot().Get("default", "small"); e.compressed != nil {
			t.Error("a small object is packed")
		}
		if e := v.Collection("a.b/cs").Snapshot().Get("n", "other"); e.compressed != nil {
			t.Error("an object of another collection is packed")
		}
		packed := func() (n, size int) {
			for e := range want {
				if e.compressed.raw.Load() == nil {
					n++
					size += len(e.compressed.packed.Load().data)
				}
			}
			return n, size
		}
		rounds := func(n int) {
			time.Sleep(time.Duration(n)*packEvery + time.Second)
			synctest.Wait()
		}
		if rounds(1); true {
			if n, _ := packed(); n != 0 {
				t.Errorf("%d are packed that were just read", n)
			}
		}
		if rounds(1); true {
			if n, size := packed(); n != 10 || size > 10*20<<10/4 {
				t.Errorf("%d are packed, into %d bytes", n, size)
			}
		}
		for e := range want { // Peek does not delay the compression
			if !bytes.Equal(e.Peek(), want[e]) {
				t.Error("other bytes at a glance")
			}
		}
		if n, _ := packed(); n != 10 {
			t.Errorf("%d are packed after a glance", n)
		}
		warm := c.Snapshot().Get("default", "w3")
		for range 5 {
			if field, _ := warm.Field("spec.bucket"); field != "b2" {
				t.Errorf("field %q", field)
			}
			if served, err := warm.Encoded("x", func() ([]byte, error) { return warm.JSON(), nil }); err != nil ||
				!bytes.Equal(served, want[warm]) {
				t.Error("other bytes")
			}
			rounds(0)
			if !bytes.Equal(warm.JSON(), want[warm]) {
				t.Error("other bytes")
			}
			rounds(1)
		}
		if n, _ := packed(); n != 9 {
			t.Errorf("%d of 9 cold ones are packed", n)
		}
		if rounds(2); true {
			if n, _ := packed(); n != 10 || warm.Cached("x") != nil {
				t.Errorf("%d are packed after all have gone cold", n)
			}
		}
		for e, was := range want {
			if !bytes.Equal(e.JSON(), was) || e.UID == "" || e.size() != len(was)+256 {
				t.Errorf("%s is not what it was", e.Key())
			}
		}
		cancel()
		running.Wait()
	})
}

// TestPackedIsReadWhilePacking runs readers and the compressor concurrently.
func TestPackedIsReadWhilePacking(t *testing.T) {
	t.Parallel()
	v, c := packing(t, 5)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				e := c.Snapshot().Get("default", fmt.Sprint("w", i))
				if raw := e.JSON(); len(raw) != int(e.compressed.size) || raw[0] != '{' || raw[len(raw)-1] != '}' {
					t.Error("not an object")
					return
				}
			}
		})
	}
	var open []*Entry
	for range 300 {
		open = v.compressor.round(open, &v.compressor.fresh)
	}
	close(done)
	readers.Wait()
	seen := map[*Entry]bool{}
	for _, e := range append(open, v.compressor.fresh...) {
		if seen[e] {
			t.Errorf("%s is in the packer's care twice", e.Key())
		}
		seen[e] = true
	}
}

// TestAlikeArePacked packs similar objects against each other: each takes little memory, and all are restored exactly,
// for every base.
func TestAlikeArePacked(t *testing.T) {
	t.Parallel()
	v := New(nil, Options{Log: slog.New(slog.DiscardHandler), Alike: []string{"stable.example.com/widgets"}})
	c := v.Collection("stable.example.com/widgets")
	want := map[string][]byte{}
	put := func(name string, value []byte) {
		rev := v.Revision() + 1
		v.apply(store.WatchBatch{Revision: rev, Events: []store.Event{
			{Key: "stable.example.com/widgets/default/" + name, Value: value, Revision: rev},
		}})
		want[name] = bytes.Clone(c.Snapshot().Get("default", name).Peek())
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		name := fmt.Sprint("w", i)
		put(name, realistic(name, 1000+500*(i%3)))
		if i%50 == 0 { // it has little in common with others
			noise := make([]byte, 3000)
			for i := range noise {
				noise[i] = 'a' + byte(random.IntN(26))
			}
			put("odd"+name, fmt.Appendf(nil, `{"metadata":{"name":"oddw%d"},"spec":{"bucket":"b","x":"%s"}}`, i, noise))
		}
	}
	put("small", realistic("small", 100))
	var open []*Entry
	for range 2 {
		open = v.compressor.round(open, &v.compressor.alike)
	}
	if len(open) > 0 {
		t.Errorf("%d lie open", len(open))
	}
	size, bases := 0, map[*delta.Base]bool{}
	for name, was := range want {
		e := c.Snapshot().Get("default", name)
		if bucket, _ := e.Field("spec.bucket"); bucket == "" {
			t.Errorf("%s has no field", name)
		}
		if !bytes.Equal(e.Peek(), was) {
			t.Errorf("%s is not what it was", name)
		}
		if e.compressed == nil {
			if name != "small" {
				t.Errorf("%s is not packed", name)
			}
			continue
		}
		if e.compressed.raw.Load() != nil {
			t.Errorf("%s lies open after a glance", name)
		}
		if !strings.HasPrefix(name, "odd") {
			size += len(e.compressed.packed.Load().data)
		}
		bases[e.compressed.packed.Load().base] = true
		for read := range 2 { // the second read finds it unpacked
			if !bytes.Equal(e.JSON(), was) {
				t.Errorf("%s is not what it was at read %d", name, read+1)
			}
		}
	}
	if size > 1000*1500/5 || len(bases) > 20 {
		t.Errorf("they take %d bytes and %d bases", size, len(bases))
	}
}

// BenchmarkOpen is the first read of a cold definition.
func BenchmarkOpen(b *testing.B) {
	e, err := newEntry("w", store.Record{Value: realistic("w", 32<<10)}, newInterner())
	if err != nil {
		b.Fatal(err)
	}
	p := newCompressor([]string{"p"}, nil)
	p.take("p", e, nil)
	open := p.round(p.round(nil, &p.fresh), &p.fresh)
	b.SetBytes(int64(e.compressed.size))
	b.ReportAllocs()
	for b.Loop() {
		_ = e.JSON()
		e.compressed.raw.Store(nil)
	}
	b.ReportMetric(float64(len(open)), "open")
	b.ReportMetric(float64(len(e.compressed.packed.Load().data)), "packed-B")
}
