// Package freeport finds ports for servers of tests that cannot listen on ":0": other programs, and servers that end
// and start again in the same place.
package freeport

import (
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// Linux assigns ports of outgoing connections, and of listeners on any port, from 32768 up. Ports below are not
// assigned at random, so they are still free when a server starts, or starts again.
const lowest, highest = 20000, 32000

// given holds the ports that Port has returned in this process, with their claims.
var given sync.Map

// Port returns a free port of 127.0.0.1, another one each time. On Linux no other concurrent test process gets it.
func Port(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := lowest + rand.IntN(highest-lowest)
		if _, taken := given.Load(port); taken {
			continue
		}
		claimed, ok := claim(port)
		if !ok {
			continue
		}
		if _, taken := given.LoadOrStore(port, claimed); taken {
			continue
		}
		if l, err := net.Listen("tcp", address(port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("no free port between %d and %d", lowest, highest)
	return 0
}

// claim claims a port for the lifetime of this process, whether or not it is in use: it holds an abstract socket with
// its number as name. Only Linux has these; elsewhere processes choose different ports only by chance.
func claim(port int) (io.Closer, bool) {
	if runtime.GOOS != "linux" {
		return nil, true
	}
	l, err := net.Listen("unix", "@bowsprit-freeport-"+strconv.Itoa(port))
	return l, err == nil
}

// Address returns 127.0.0.1 with a Port.
func Address(t testing.TB) string {
	t.Helper()
	return address(Port(t))
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
