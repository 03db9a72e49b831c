// Package freeport finds ports for servers of tests that cannot listen on ":0": other programs, and servers that end
// and start again in the same place.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Linux takes the ports of outgoing connections, and of listeners that want any, from 32768 up. Below, no program gets
// a port by chance, so that it is still free when a server starts, or starts again.
const lowest, highest = 20000, 32000

// given holds the ports that Port has returned in this process.
var given sync.Map

// Port returns a port of 127.0.0.1 at which nothing listens, another one each time.
func Port(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := lowest + rand.IntN(highest-lowest)
		if _, taken := given.LoadOrStore(port, true); taken {
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

// Address returns 127.0.0.1 with a Port.
func Address(t testing.TB) string {
	t.Helper()
	return address(Port(t))
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
