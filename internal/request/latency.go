package request

import (
	"context"
	"sync/atomic"
	"time"
)

// Phase is a part of a request's handling time.
type Phase int

// The phases have Kubernetes' names in annotations of the audit log.
const (
	Authentication Phase = iota
	Impersonation
	Queue // waiting for seats of its priority level
	Authorization
	MutatingWebhooks
	ValidatingWebhooks
	Storage
	ResponseWrite
	Phases // number of phases
)

var phaseNames = [Phases]string{
	"authentication", "impersonation", "apf-queue-wait", "authorization", "mutating-webhook", "validating-webhook",
	"etcd", "response-write",
}

// Latency records the time that a request spends in each phase. It is safe for concurrent use; the zero value is empty.
type Latency struct {
	spent [Phases]atomic.Int64
}

// Spend adds time to a phase. Validating webhooks run concurrently, so the longest call counts.
func (l *Latency) Spend(p Phase, d time.Duration) {
	spent := &l.spent[p]
	if p != ValidatingWebhooks {
		spent.Add(int64(d))
		return
	}
	for {
		longest := spent.Load()
		if longest >= int64(d) || spent.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// Spent returns the time that was spent on a phase.
func (l *Latency) Spent(p Phase) time.Duration { return time.Duration(l.spent[p].Load()) }

// Each calls f for every phase that has taken time, with its name.
func (l *Latency) Each(f func(name string, took time.Duration)) {
	for p, name := range phaseNames {
		if took := l.Spent(Phase(p)); took != 0 {
			f(name, took)
		}
	}
}

// Spend adds time to the request of ctx, if any.
func Spend(ctx context.Context, p Phase, d time.Duration) {
	if s := ScopeOf(ctx); s != nil {
		s.Latency.Spend(p, d)
	}
}
