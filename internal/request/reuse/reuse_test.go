package reuse

import (
	"bytes"
	"sync"
	"testing"
)

// TestLateReader reads a buffer after Put: binaries with the race detector have spoiled it, others have not.
func TestLateReader(t *testing.T) {
	buffers := Bytes(8)
	b := buffers.Get()
	*b = append(*b, "secret"...)
	late := *b
	buffers.Put(b)
	want := []byte("secret")
	if spoils {
		want = bytes.Repeat([]byte{Spoiled}, 6)
	}
	if !bytes.Equal(late, want) {
		t.Errorf("a late reader reads %q, expected %q", late, want)
	}
}

// TestPool gives each goroutine a value of its own. A pool without spoil keeps values as they are.
func TestPool(t *testing.T) {
	type counter struct{ users int }
	values := New(func() *counter { return new(counter) }, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				c := values.Get()
				if c.users++; c.users != 1 {
					t.Errorf("%d users at the same time", c.users)
				}
				c.users--
				values.Put(c)
			}
		})
	}
	all.Wait()
}
