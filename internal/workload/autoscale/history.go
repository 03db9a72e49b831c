package autoscale

import (
	"slices"
	"time"
)

// history is the recent proposals for a target, and the recent changes of its replicas.
type history struct {
	proposed []sample // replicas
	done     []sample // changes of the number of replicas
}

type sample struct {
	n  int32
	at time.Time
}

// begin records the replicas of a target at its first reconcile.
func (h *history) begin(current int32, now time.Time) {
	if h.proposed == nil {
		h.proposed = []sample{{current, now}}
	}
}

// settle applies stabilization to a proposal without behavior: a target scales down only after the lower proposal has
// held for a while. It also returns the conditions.
func (h *history) settle(l limits, desired int32, now time.Time) (int32, verdict, verdict) {
	able := verdict{true, "ReadyForNewScale", "recommended size matches current size"}
	since := now.Add(-downWindow)
	h.proposed = slices.DeleteFunc(h.proposed, func(m sample) bool { return m.at.Before(since) })
	steady := desired
	for _, m := range h.proposed {
		steady = max(steady, m.n)
	}
	h.proposed = append(h.proposed, sample{desired, now})
	if steady != desired {
		able = steadyDown
	}
	result, limited := l.apply(steady)
	limited.holds = result != steady
	return result, able, limited
}

var (
	steadyUp = verdict{true, "ScaleUpStabilized",
		"recent recommendations were lower than current one, applying the lowest recent recommendation"}
	steadyDown = verdict{true, "ScaleDownStabilized",
		"recent recommendations were higher than current one, applying the highest recent recommendation"}
)

// settleBy is settle with behavior.
func (h *history) settleBy(r rules, l limits, desired int32, now time.Time) (int32, verdict, verdict) {
	able := verdict{true, "ReadyForNewScale", "recommended size matches current size"}
	up, down := r.windows()
	upSince, downSince := now.Add(-up), now.Add(-down)
	low, high := desired, desired
	for _, m := range h.proposed {
		if m.at.After(upSince) {
			low = min(low, m.n)
		}
		if m.at.After(downSince) {
			high = max(high, m.n)
		}
	}
	steady := min(max(l.current, low), high)
	h.proposed = slices.DeleteFunc(h.proposed,
		func(m sample) bool { return m.at.Before(upSince) && m.at.Before(downSince) })
	h.proposed = append(h.proposed, sample{desired, now})
	if steady != desired {
		if able = steadyDown; desired >= l.current {
			able = steadyUp
		}
	}
	result, limited := l.applyBy(r, h, steady, now)
	limited.holds = result != steady
	return result, able, limited
}

// scaled records a change of a target's replicas, and drops changes older than the period of every policy.
func (h *history) scaled(r rules, by int32, now time.Time) {
	since := now.Add(-max(longest(r.up.Policies), longest(r.down.Policies)))
	h.done = slices.DeleteFunc(h.done, func(m sample) bool { return m.at.Before(since) })
	h.done = append(h.done, sample{by, now})
}

// change returns by how many replicas a target was scaled after a time.
func (h *history) change(after time.Time) (n int32) {
	for _, m := range h.done {
		if m.at.After(after) {
			n += m.n
		}
	}
	return n
}
