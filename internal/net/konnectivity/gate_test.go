package konnectivity

import (
	"io"
	"net"
	"testing"
)

// pipes is a listener with connections that never send data.
type pipes struct{ far []net.Conn }

func (p *pipes) Accept() (net.Conn, error) {
	near, far := net.Pipe()
	p.far = append(p.far, far)
	return near, nil
}
func (*pipes) Close() error   { return nil }
func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestGate has more strangers than there may be: the oldest end, known peers do not, and all end with the gate.
func TestGate(t *testing.T) {
	far := &pipes{}
	g := NewGate(far, 10)
	var known int
	for i := range 3 * maxStrangers {
		c, err := g.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if i%200 == 0 && c.(*Conn).Know() {
			known++
		}
		if strangers, peers := g.Connections(); strangers > maxStrangers || peers != known || peers > 10 {
			t.Fatalf("after %d: %d strangers, %d known, want %d", i, strangers, peers, known)
		}
	}
	if known != 10 {
		t.Errorf("%d are known", known)
	}
	ended := func(c net.Conn) bool {
		_, err := c.Write([]byte("x"))
		return err == io.ErrClosedPipe
	}
	if !ended(far.far[1]) {
		t.Error("the oldest stranger is still there")
	}
	g.CloseAll()
	for i, c := range far.far {
		if !ended(c) {
			t.Fatalf("connection %d is still there", i)
		}
	}
	if strangers, peers := g.Connections(); strangers+peers != 0 {
		t.Errorf("%d strangers and %d known are left", strangers, peers)
	}
	if _, err := g.Accept(); err == nil {
		t.Error("a closed gate takes connections")
	}
}
