package autoscale

import (
	"slices"
	"time"
)

// history is what has been proposed for a target, and what has been done to it, lately.
type history struct {
	proposed []moment // replicas
	done     []moment // by how many replicas it was scaled
}

type moment struct {
	n  int32
	at time.Time
}

// begin notes how many replicas a target has that is looked at for the first time.
func (h *history) begin(current int32, now time.Time) {
	if h.proposed == nil {
		h.proposed = []moment{{current, now}}
	}
}

// settle returns what becomes of a proposal without behavior, and what the conditions say: a target gets fewer replicas
// only if that has been proposed for a while.
func (h *history) settle(l limits, desired int32, now time.Time) (int32, verdict, verdict) {
	able := verdict{true, "ReadyForNewScale", "recommended size matches current size"}
	since := now.Add(-downWindow)
	h.proposed = slices.DeleteFunc(h.proposed, func(m moment) bool { return m.at.Before(since) })
	steady := desired
	for _, m := range h.proposed {
		steady = max(steady, m.n)
	}
	h.proposed = append(h.proposed, moment{desired, now})
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
		func(m moment) bool { return m.at.Before(upSince) && m.at.Before(downSince) })
	h.proposed = append(h.proposed, moment{desired, now})
	if steady != desired {
		if able = steadyDown; desired >= l.current {
			able = steadyUp
		}
	}
	result, limited := l.applyBy(r, h, steady, now)
	limited.holds = result != steady
	return result, able, limited
}

// scaled notes by how many replicas a target was scaled, and forgets what no policy looks at any more.
func (h *history) scaled(r rules, by int32, now time.Time) {
	since := now.Add(-max(longest(r.up.Policies), longest(r.down.Policies)))
	h.done = slices.DeleteFunc(h.done, func(m moment) bool { return m.at.Before(since) })
	h.done = append(h.done, moment{by, now})
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
