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

// Linux takes the ports of outgoing connections, and of listeners that want any, from 32768 up. Below, no program gets
// a port by chance, so that it is still free when a server starts, or starts again.
const lowest, highest = 20000, 32000

// given holds the ports that Port has returned in this process, and what claims them.
var given sync.Map

// Port returns a port of 127.0.0.1 at which nothing listens, another one each time, and on Linux one that no other
// process of tests that runs at the same time has or gets.
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

// claim claims a port, whether anything listens there or not, for as long as this process runs: it holds an abstract
// socket that is named after it. Only Linux has those; elsewhere it is chance that two processes choose differently.
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
