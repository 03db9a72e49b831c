package bowsprit

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/bowsprit/bowsprit/internal/request/charge"
)

const (
	// trimEvery is the interval in which caches of compiled data are searched for unused entries.
	trimEvery = time.Minute
	// tightWithoutLimit is the live heap, in bytes, from which memory counts as tight if GOMEMLIMIT sets no limit.
	tightWithoutLimit = 1 << 30
)

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
		tight := liveHeap() > tightAt(debug.SetMemoryLimit(-1))
		dropped := p.host.Catalog.Trim(tight)
		if tight {
			p.documents.Drop()
		}
		if dropped > 0 {
			p.log.Debug("dropped compiled schemas", "versions", dropped, "tight", tight)
		}
	}
}

// tightAt returns the live heap from which memory is tight under a limit of the Go runtime.
func tightAt(limit int64) uint64 {
	if limit == math.MaxInt64 {
		return tightWithoutLimit
	}
	return uint64(limit) / 4 * 3
}

// liveHeap is the size of the heap after the last garbage collection, in bytes.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
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
