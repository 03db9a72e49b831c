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
func (p *process) trim(ctx context.Context) error {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		tight := charge.Tight(debug.SetMemoryLimit(-1))
		dropped := p.host.Catalog.Trim(tight)
		if tight {
			p.documents.Drop()
		}
		if dropped > 0 {
			p.log.Debug("dropped compiled schemas", "versions", dropped, "tight", tight)
		}
	}
}

// ledger returns the account book of the memory of requests, and has released memory returned to the system.
func (p *process) ledger() *charge.Ledger {
	bound := int64(p.config.Limits.RequestMemory) << 20
	if bound == 0 {
		bound = charge.Default(debug.SetMemoryLimit(-1), os.ReadFile)
	}
	l := charge.New(bound)
	l.Register(p.host.Metrics)
	p.background(l.Run)
	return l
}
