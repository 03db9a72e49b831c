package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
)

// BenchmarkEvent sends 5 KB to each of 200 clients that wait, as a watch does: with a connection each, and on two
// connections. An operation is a delivery to one client, with the client's own work.
func BenchmarkEvent(b *testing.B) {
	for _, direct := range []bool{false, true} {
		for _, conns := range []int{200, 2} {
			name := "go"
			if direct {
				name = "direct"
			}
			b.Run(fmt.Sprintf("connections=%d/server=%s", conns, name), func(b *testing.B) { event(b, direct, conns) })
		}
	}
}

const watchers = 200

func event(b *testing.B, direct bool, conns int) {
	payload := append(bytes.Repeat([]byte("x"), 5000), '\n')
	hub := struct {
		sync.Mutex
		wake chan struct{}
	}{wake: make(chan struct{})}
	s := serve(b, direct, func(w http.ResponseWriter, r *http.Request) {
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
	b.ResetTimer()
	for n := 0; n < b.N; n += watchers {
		received.Add(watchers)
		hub.Lock()
		close(hub.wake)
		hub.wake = make(chan struct{})
		hub.Unlock()
		received.Wait()
	}
}
