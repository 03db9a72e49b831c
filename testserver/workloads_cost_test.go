package testserver_test

import (
	"runtime"
	"testing"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// mostGoroutines and mostBytes bound the cost of simulated workloads on an idle server.
const (
	mostGoroutines = 20
	mostBytes      = 5 << 20
)

// TestCostOfWorkloads checks that the simulation costs little on an idle server, because many tests have a server of
// their own.
func TestCostOfWorkloads(t *testing.T) {
	holds := func(configure ...func(*bowsprit.Config)) (bytes int64, goroutines int) {
		before, had := heap(), runtime.NumGoroutine()
		server := testserver.Start(t, configure...)
		bytes, goroutines = heap()-before, runtime.NumGoroutine()-had
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		return bytes, goroutines
	}
	holds(testserver.WithWorkloads()) // makes the data that all servers share
	var bytes int64
	var goroutines int
	for range 5 { // other goroutines of the process count too, so take the best of a few runs
		plain, without := holds()
		with, all := holds(testserver.WithWorkloads())
		bytes, goroutines = with-plain, all-without
		if bytes <= mostBytes && goroutines <= mostGoroutines {
			t.Logf("%d bytes and %d goroutines more", bytes, goroutines)
			return
		}
	}
	t.Errorf("a server with workloads holds %d bytes and %d goroutines more, at most %d and %d are allowed", bytes,
		goroutines, mostBytes, mostGoroutines)
}
