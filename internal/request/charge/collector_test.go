package charge

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func gogc() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestEagerCollector has large requests of two ledgers come and go. It does not run in parallel: the setting is the
// process's.
func TestEagerCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	one, two := New(0), New(0)
	var open []*Account
	for i, step := range []struct {
		ledger *Ledger // nil closes the oldest account
		weight int64
		want   uint64
	}{
		{one, giveBack - 1, 100},
		{one, free + 1, eagerPercent},
		{two, giveBack, eagerPercent},
		{two, giveBack, eagerPercent},
		{nil, 0, eagerPercent},
		{nil, 0, eagerPercent},
		{nil, 0, eagerPercent},
		{nil, 0, 100},
	} {
		if step.ledger == nil {
			open[0].Close()
			open = open[1:]
		} else {
			a := begin(step.ledger, named("alice"))
			if err := a.Hold(step.weight); err != nil {
				t.Fatal(err)
			}
			open = append(open, a)
		}
		if got := gogc(); got != step.want {
			t.Errorf("after step %d GOGC is %d, want %d", i, got, step.want)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	a := begin(one, named("alice"))
	if err := a.Hold(giveBack); err != nil {
		t.Fatal(err)
	}
	if got := gogc(); got != 10 {
		t.Errorf("a lower GOGC became %d", got)
	}
	a.Close()
}
