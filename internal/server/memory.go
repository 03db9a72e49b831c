package server

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/bowsprit/bowsprit/internal/request/charge"
)

// trimEvery is the time between two searches for compiled schemas and documents that are not in use.
const trimEvery = time.Minute

// trim drops unused compiled schemas and documents, and drops them sooner when memory is tight: when the live heap has
// reached three quarters of GOMEMLIMIT, or a gigabyte without a limit. The server compiles them again on demand.
func (l *loaded) trim(ctx context.Context) error {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		tight := charge.Tight(debug.SetMemoryLimit(-1))
		dropped := l.host.Catalog.Trim(tight)
		if tight {
			l.documents.Drop()
		}
		if dropped > 0 {
			l.log.Debug("dropped compiled schemas", "versions", dropped, "tight", tight)
		}
	}
}

// ledger returns the account book of the memory of requests, and has released memory returned to the system.
func (b *built) ledger() *charge.Ledger {
	bound := int64(b.config.Limits.RequestMemory) << 20
	if bound == 0 {
		bound = charge.Default(debug.SetMemoryLimit(-1), os.ReadFile)
	}
	book := charge.New(bound)
	book.Register(b.host.Metrics)
	b.background(book.Run)
	return book
}
