package konnectivity

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"time"
)

// TestConnections carries bytes both ways over many connections, through all pairs.
func TestConnections(t *testing.T) {
	for _, pair := range pairs {
		t.Run(pair.name, func(t *testing.T) {
			s, address := newSite(t), echo(t)
			pair.server(t, s)
			pair.agent(t, s)
			dial := dialer(t, s, address)
			data := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					conn, err := dial(t.Context(), "tcp", address)
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					go func() { _, _ = conn.Write(data) }()
					got := make([]byte, len(data))
					if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, data) {
						t.Errorf("%v, or other bytes came back", err)
					}
				})
			}
			all.Wait()
			if conn, err := dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil {
				_ = conn.Close()
				t.Error("something listens on port 1")
			} else if want := "dial tcp 127.0.0.1:1: connect: connection refused"; err.Error() != want {
				t.Errorf("nothing listens there: %v, want %s", err, want)
			}
		})
	}
}

// TestRestarts stops the agent and the server in turn: open connections end, and later ones work.
func TestRestarts(t *testing.T) {
	for _, pair := range pairs {
		t.Run(pair.name, func(t *testing.T) {
			s, address := newSite(t), echo(t)
			stopServer, stopAgent := pair.server(t, s), pair.agent(t, s)
			dial := dialer(t, s, address)
			check := func(desc string, stop func()) {
				conn, err := dial(t.Context(), "tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				stop()
				_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
				if _, err := conn.Read(make([]byte, 1)); err == nil {
					t.Errorf("%s: a connection went on", desc)
				}
			}
			check("agent gone", stopAgent)
			pair.agent(t, s)
			again := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				conn, err := dial(ctx, "tcp", address)
				if err == nil {
					_ = conn.Close()
				}
				return err
			}
			within(t, again)
			check("server gone", stopServer)
			pair.server(t, s)
			within(t, again)
		})
	}
}

// BenchmarkThroughput echoes 64 MiB over four connections, through all pairs.
func BenchmarkThroughput(b *testing.B) {
	for _, pair := range pairs {
		b.Run(pair.name, func(b *testing.B) {
			s, address := newSite(b), echo(b)
			pair.server(b, s)
			pair.agent(b, s)
			dial := dialer(b, s, address)
			const connections, size = 4, 16 << 20
			b.SetBytes(connections * size)
			for b.Loop() {
				var all sync.WaitGroup
				for range connections {
					all.Go(func() {
						conn, err := dial(context.Background(), "tcp", address)
						if err != nil {
							b.Error(err)
							return
						}
						defer conn.Close()
						all.Go(func() {
							piece := make([]byte, 16<<10) // a TLS record
							for n := 0; n < size; n += len(piece) {
								if _, err := conn.Write(piece); err != nil {
									b.Error(err)
									return
								}
							}
						})
						if _, err := io.CopyN(io.Discard, conn, size); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
			}
		})
	}
}
