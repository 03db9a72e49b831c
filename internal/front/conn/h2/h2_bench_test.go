package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/request/handover"
)

// BenchmarkEvent sends 5 KB to each of 200 clients that wait, as a watch does: with a connection each, and on two
// connections. An operation is a delivery to one client, with the client's own work. The servers are Go's, ours, and
// ours with responses that are handed over.
func BenchmarkEvent(b *testing.B) {
	for _, server := range []string{"go", "direct", "handover"} {
		for _, conns := range []int{200, 2} {
			name := fmt.Sprintf("connections=%d/server=%s", conns, server)
			b.Run(name, func(b *testing.B) { event(b, server, conns) })
		}
	}
}

const watchers = 200

// carriedEvents is a response that was handed over.
type carriedEvents struct {
	w       http.ResponseWriter
	payload []byte
	due     atomic.Bool
}

func (e *carriedEvents) Turn(time.Time) (next time.Time, complete bool) {
	if e.due.Swap(false) {
		_, _ = e.w.Write(e.payload)
	}
	return next, false
}
func (e *carriedEvents) Over() {}

func event(b *testing.B, server string, conns int) {
	payload := append(bytes.Repeat([]byte("x"), 5000), '\n')
	hub := struct {
		sync.Mutex
		wake    chan struct{}
		carried []func()
	}{wake: make(chan struct{})}
	s := serve(b, server != "go", func(w http.ResponseWriter, r *http.Request) {
		if server == "handover" {
			e := &carriedEvents{w: w, payload: payload}
			stream := handover.To(w, e)
			hub.Lock()
			defer hub.Unlock()
			hub.carried = append(hub.carried, func() { e.due.Store(true); stream.Wake() })
			return
		}
		control := http.NewResponseController(w)
		hub.Lock()
		wake := hub.wake
		hub.Unlock()
		_ = control.Flush()
		for {
			select {
			case <-wake:
			case <-r.Context().Done():
				return
			}
			hub.Lock()
			wake = hub.wake
			hub.Unlock()
			if _, err := w.Write(payload); err != nil {
				return
			}
			_ = control.Flush()
		}
	})
	clients := make([]*http.Client, conns)
	for i := range clients {
		clients[i] = s.client(b)
	}
	var received sync.WaitGroup
	for i := range watchers {
		resp, err := clients[i%conns].Get(s.url("/"))
		must(b, err)
		defer resp.Body.Close()
		go func() {
			for p := make([]byte, len(payload)); ; {
				if _, err := io.ReadFull(resp.Body, p); err != nil {
					return
				}
				received.Done()
			}
		}()
	}
	var before, after syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	b.ResetTimer()
	for n := 0; n < b.N; n += watchers {
		received.Add(watchers)
		hub.Lock()
		close(hub.wake)
		hub.wake = make(chan struct{})
		carried := hub.carried
		hub.Unlock()
		for _, wake := range carried {
			wake()
		}
		received.Wait()
	}
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
}
