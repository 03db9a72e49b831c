package conn

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// counted is a connection that counts system calls.
type counted struct {
	net.Conn
	writes atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// gathered returns a gatherer, the counter below it, and the connection of its client.
func gathered(t *testing.T) (*gatherer, *counted, *tls.Conn) {
	t.Helper()
	p, err := pki.Open(pki.Config{})
	must(t, err)
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := ln.Accept()
		accepted <- c
	}()
	raw, err := net.Dial("tcp", ln.Addr().String())
	must(t, err)
	below := &counted{Conn: <-accepted}
	server := tls.Server(&corked{Conn: below}, p.TLSConfig())
	client := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	shaken := make(chan error, 1)
	go func() { shaken <- server.HandshakeContext(t.Context()) }()
	must(t, client.HandshakeContext(t.Context()))
	must(t, <-shaken)
	g := newGatherer(server, func() {})
	t.Cleanup(func() { client.Close(); g.Close() })
	below.writes.Store(0)
	return g, below, client
}

// TestGathererKeepsOrder writes pieces of all sizes and closes at once: everything arrives, in order.
func TestGathererKeepsOrder(t *testing.T) {
	t.Parallel()
	g, _, client := gathered(t)
	random := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 3<<20)
	for i := range want {
		want[i] = byte(random.Uint32())
	}
	go func() {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(1<<random.IntN(20)))
			if _, err := g.Write(rest[:n]); err != nil {
				t.Error(err)
				return
			}
			rest = rest[n:]
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	got, err := io.ReadAll(client)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Fatalf("%d bytes of %d, or others", len(got), len(want))
	}
}

// TestGathererGathers accumulates frames while the sender waits, and counts the resulting writes.
func TestGathererGathers(t *testing.T) {
	t.Parallel()
	g, below, client := gathered(t)
	g.below.mu.Lock() // blocks the sender in hold
	const frame, frames = 16<<10 + 9, 7
	for range frames {
		_, err := g.Write(make([]byte, frame))
		must(t, err)
	}
	g.below.mu.Unlock()
	_, err := io.ReadFull(client, make([]byte, frame*frames))
	must(t, err)
	// The sender may have left with the first frame before it stood still; the others went together.
	if n := below.writes.Load(); n > 2 {
		t.Errorf("%d writes to the socket for %d frames", n, frames)
	}
}

// TestGathererSaysBefore checks that sending is called before anything is sent.
func TestGathererSaysBefore(t *testing.T) {
	t.Parallel()
	g, below, client := gathered(t)
	result := make(chan int64)
	g.sending = func() { result <- below.writes.Load() }
	for i := range int64(20) {
		_, err := g.Write([]byte("answer"))
		must(t, err)
		if writes := <-result; writes != i {
			t.Fatalf("answer %d: %d writes before", i, writes)
		}
		_, err = io.ReadFull(client, make([]byte, len("answer")))
		must(t, err)
	}
}

// TestGathererWaitsForTheClient checks that unread data does not pile up, and that closing the connection ends the
// wait.
func TestGathererWaitsForTheClient(t *testing.T) {
	t.Parallel()
	p, err := pki.Open(pki.Config{})
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		below, raw := net.Pipe() // net.Pipe has no buffer
		server := tls.Server(&corked{Conn: below}, p.TLSConfig())
		client := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		go func() { _ = server.HandshakeContext(t.Context()) }()
		go func() { _, _ = client.Read(make([]byte, 1)) }()
		synctest.Wait()
		g := newGatherer(server, func() {})
		written, failed := 0, make(chan error, 1)
		go func() {
			for {
				n, err := g.Write(make([]byte, 1000))
				if written += n; err != nil {
					failed <- err
					return
				}
			}
		}()
		synctest.Wait()
		if written > 2*gatherSize {
			t.Errorf("%d bytes were taken and nobody has read", written)
		}
		raw.Close()
		if err := <-failed; err == nil {
			t.Error("no error after the end of the connection")
		}
		g.Close()
		if err := g.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
	})
}

// TestGathererWaitsForTheFarewell has a server close a connection once all responses are written. A client that reads
// late and sends window updates must get all data and then the end. A client that never disconnects must not delay the
// server for longer than leaveWait.
func TestGathererWaitsForTheFarewell(t *testing.T) {
	t.Parallel()
	p, err := pki.Open(pki.Config{})
	must(t, err)
	for name, leaves := range map[string]bool{"leaves": true, "stays": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { checkFarewell(t, p.TLSConfig(), leaves) })
		})
	}
}

func checkFarewell(t *testing.T, config *tls.Config, leaves bool) {
	below, raw := net.Pipe()
	server := tls.Server(&corked{Conn: below}, config)
	client := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	shaken := make(chan error, 1)
	go func() { shaken <- server.HandshakeContext(t.Context()) }()
	must(t, client.HandshakeContext(t.Context()))
	must(t, <-shaken)
	g := newGatherer(server, func() {})
	farewell := []byte{0, 0, 8, frameGoAway, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	_, err := g.Write(farewell)
	must(t, err)
	began, closed := time.Now(), make(chan error, 1)
	go func() { closed <- g.Close() }()
	time.Sleep(2 * closeWait) // of the bubble's clock, as all that follow
	got := make([]byte, len(farewell))
	_, err = io.ReadFull(client, got)
	must(t, err)
	result := make(chan error, 1)
	go func() {
		_, err := client.Write([]byte("I have read it"))
		result <- err
	}()
	time.Sleep(closeWait / 2)
	if n, err := client.Read(got); n > 0 || err != io.EOF {
		t.Errorf("after the farewell: %d bytes, %v", n, err)
	}
	must(t, <-result)
	if leaves {
		must(t, client.Close())
	}
	must(t, <-closed)
	if took := time.Since(began); took > 3*closeWait && leaves || took > 2*leaveWait+closeWait {
		t.Errorf("closed after %s", took)
	}
	_ = raw.Close()
}

// TestCorkedIsBounded checks that a client cannot make TLS itself fill the memory.
func TestCorkedIsBounded(t *testing.T) {
	t.Parallel()
	server, client := net.Pipe()
	defer client.Close()
	c := &corked{Conn: server}
	c.hold()
	var err error
	for i := 0; err == nil && i < 1<<20; i++ {
		_, err = c.Write(make([]byte, 64))
	}
	if !errors.Is(err, errNotRead) {
		t.Errorf("error %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, client) }()
	must(t, c.release())
	_, err = c.Write([]byte("directly"))
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestGathererReadsAhead reads like the HTTP/2 server: the nine bytes of each frame's header, then the rest. It expects
// all bytes in order, then the error, and the error again on the next read.
func TestGathererReadsAhead(t *testing.T) {
	t.Parallel()
	p, err := pki.Open(pki.Config{})
	must(t, err)
	ours, theirs := net.Pipe()
	server, client := tls.Server(ours, p.TLSConfig()), tls.Client(theirs, &tls.Config{InsecureSkipVerify: true})
	sent := make([]byte, 40<<10)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	go func() {
		for rest := sent; len(rest) > 0; {
			n := min(1+rand.IntN(2*aheadSize), len(rest))
			_, _ = client.Write(rest[:n])
			rest = rest[n:]
		}
		_ = client.CloseWrite()
	}()
	g := newGatherer(server, func() {})
	defer g.Close()
	var got []byte
	for piece := range 1 << 16 {
		into := make([]byte, []int{frameHeaderSize, 100, aheadSize, 4 * aheadSize}[piece%4])
		n, err := g.Read(into)
		if n > 0 && err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes and %v", n, err)
		}
		if got = append(got, into[:n]...); err != nil {
			break
		}
	}
	if !bytes.Equal(got, sent) {
		t.Fatalf("got %d bytes, of %d that were sent, or others", len(got), len(sent))
	}
	if n, err := g.Read(make([]byte, 9)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d bytes, %v", n, err)
	}
	_ = theirs.Close()
}
