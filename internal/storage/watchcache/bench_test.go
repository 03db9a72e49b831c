package watchcache

import (
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// realistic returns an object of about size bytes as kube-apiserver stores it.
func realistic(name string, size int) []byte {
	head := fmt.Sprintf(
		`{"apiVersion":"stable.example.com/v1","kind":"Widget","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{"app":"x","tier":"front"},"name":%q,"namespace":"default","uid":"2f1b4c1e-8f57-4d0c-9b55-6f0b1a1c0a11"},"spec":{"bucket":"b%d","items":[`, name, len(name)%7)
	var b strings.Builder
	b.WriteString(head)
	for i := 0; b.Len() < size-60; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"count":%d,"name":"item-%d"}`, i, i)
	}
	b.WriteString(`]},"status":{"ready":true}}`)
	return []byte(b.String())
}

// filledView returns a view without a store, with n objects of about size bytes in one collection.
func filledView(n, size int) (*View, *Collection) {
	v := New(nil, Options{Log: slog.New(slog.DiscardHandler)})
	for i := range n {
		key := fmt.Sprintf("default/widget-%06d", i)
		v.apply(store.WatchBatch{
			Revision: int64(i + 1),
			Events: []store.Event{
				{
					Key: "stable.example.com/widgets/" + key, Value: realistic(key, size), Revision: int64(i + 1),
					Created: int64(i + 1),
				},
			},
		})
	}
	return v, v.Collection("stable.example.com/widgets")
}

func BenchmarkScan(b *testing.B) {
	for _, size := range []int{1 << 10, 5 << 10, 100 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			data := realistic("widget", size)
			in := newInterner()
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := newEntry("default/widget", store.Record{Value: data, Revision: 123456}, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkApply measures how fast the view applies changes from the store.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1 << 10, 5 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			v, _ := filledView(10_000, size)
			value := realistic("widget", size)
			rev := v.Revision()
			keys := make([]string, 10_000)
			for i := range keys {
				keys[i] = fmt.Sprintf("stable.example.com/widgets/default/widget-%06d", i)
			}
			b.ReportAllocs()
			for b.Loop() {
				rev++
				v.apply(store.WatchBatch{
					Revision: rev,
					Events:   []store.Event{{Key: keys[int(rev)%len(keys)], Value: value, Revision: rev, Created: 1}},
				})
			}
		})
	}
}

func BenchmarkList3000(b *testing.B) {
	_, c := filledView(3000, 5<<10)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		c.Snapshot().Scan("", "", func(e *Entry) bool {
			n, _ = io.Discard.Write(e.JSON())
			return true
		})
		if n == 0 {
			b.Fatal("nothing")
		}
	}
}

// BenchmarkFieldSelector finds 3000 objects' values of a field.
func BenchmarkFieldSelector(b *testing.B) {
	_, c := filledView(3000, 5<<10)
	for b.Loop() {
		c.Snapshot().Scan("", "", func(e *Entry) bool {
			_, ok := e.Field(".spec.bucket")
			return ok
		})
	}
}

func BenchmarkGet(b *testing.B) {
	_, c := filledView(10_000, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		if c.Snapshot().Get("default", "widget-004711") == nil {
			b.Fatal("nothing")
		}
	}
}

// BenchmarkFanOut measures the delivery of one change to 200 watchers; an operation is one change.
func BenchmarkFanOut(b *testing.B) {
	const watchers = 200
	v, c := filledView(100, 5<<10)
	value := realistic("widget", 5<<10)
	ctx := b.Context()
	var wg sync.WaitGroup
	wg.Go(func() { v.notifier.run(ctx) })
	rev := v.Revision()
	var delivered atomic.Int64
	for range watchers {
		w, err := c.Watch(rev)
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			for {
				events, _, err := w.Next(ctx)
				if err != nil {
					return
				}
				delivered.Add(int64(len(events)))
			}
		})
	}
	n := 0
	begin := time.Now()
	for b.Loop() {
		n++
		rev++
		v.apply(store.WatchBatch{
			Revision: rev,
			Events: []store.Event{
				{Key: "stable.example.com/widgets/default/widget-000001", Value: value, Revision: rev, Created: 1},
			},
		})
		for delivered.Load() < int64(n-50)*watchers { // no watcher is more than 50 changes behind
			runtime.Gosched()
		}
	}
	for delivered.Load() < int64(n)*watchers {
		runtime.Gosched()
	}
	b.ReportMetric(float64(n*watchers)/time.Since(begin).Seconds(), "events/s")
}

// BenchmarkMemory measures the memory of 100,000 objects of 1 KB.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		const n = 100_000
		v, c := filledView(n, 1<<10)
		size := 0
		c.Snapshot().Scan("", "", func(e *Entry) bool {
			size += len(e.JSON())
			return true
		})
		c.history.expire(v.Revision())
		b.ReportMetric(float64(heap()-before)/n, "B/object")
		b.ReportMetric(float64(size)/n, "JSON-B/object")
		runtime.KeepAlive(v)
	}
}

// BenchmarkLoad loads 20,000 objects of 1 KB from an embedded store.
func BenchmarkLoad(b *testing.B) {
	s := openStore(b)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 20_000 / 16 {
				key := fmt.Sprintf("stable.example.com/widgets/default/w-%d-%d", w, i)
				if _, err := s.Create(b.Context(), key, realistic(key, 1<<10)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for b.Loop() {
		v := newView(s)
		if err := v.Load(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadYourWrite is an update and a linearizable read after it.
func BenchmarkReadYourWrite(b *testing.B) {
	s := openStore(b)
	v := newView(s)
	run(b, v)
	value := realistic("widget", 2<<10)
	rev, err := s.Create(b.Context(), "a.b/cs/n/o", value)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if rev, err = s.Update(b.Context(), "a.b/cs/n/o", value, rev); err != nil {
			b.Fatal(err)
		}
		if fresh, err := v.Fresh(b.Context()); err != nil || fresh < rev {
			b.Fatal(fresh, err)
		}
	}
}
