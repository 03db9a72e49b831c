package freeport

import (
	"net"
	"testing"
)

func TestPort(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		port := Port(t)
		if seen[port] || port < lowest || port >= highest {
			t.Fatalf("port %d again, or out of range", port)
		}
		seen[port] = true
	}
	l, err := net.Listen("tcp", Address(t))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
