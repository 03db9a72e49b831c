package freeport

import (
	"net"
	"runtime"
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

func TestClaim(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has abstract sockets, by which ports are claimed")
	}
	if _, ok := claim(Port(t)); ok {
		t.Error("another process could have the same port")
	}
}
