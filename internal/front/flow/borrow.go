package flow

import (
	"math"
	"slices"
	"time"

	"github.com/bowsprit/bowsprit/internal/front/flow/queue"
)

// BalanceEvery is how often Balance is called.
const BalanceEvery = 10 * time.Second

// smoothing makes past demand lose half of its weight in 5 minutes.
const smoothing = 0.977

// demandStats describes the seat demand of a level in the last period.
type demandStats struct {
	average, deviation, smoothed float64
	peak                         int
}

func (d *demandStats) update(m moments) {
	d.peak = int(math.Round(m.peak))
	if m.seconds <= 0 {
		return
	}
	d.average, d.deviation = m.mean()
	envelope := d.average + d.deviation
	d.smoothed = max(envelope, smoothing*d.smoothed+(1-smoothing)*envelope)
}

// Balance moves seats between levels according to the demand since the last call. It removes levels that are no longer
// configured and have no requests left.
func (c *Controller) Balance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := false
	for name, l := range c.levels {
		if l.quiescing && l.set.Idle() {
			delete(c.levels, name)
			gone = true
		}
	}
	if gone {
		c.divide()
		return
	}
	c.balance()
}

// claim is the range of seats that a level may get.
type claim struct{ target, lowest, highest float64 }

// balance sets the number of seats that each level may use until the next call. Exempt levels keep the seats in use.
// The others share the rest: the minimum that each needs, plus a part in proportion to its target. The caller holds mu.
func (c *Controller) balance() {
	left := c.nominal
	var limited []*level
	var claims []claim
	lowest, least := 0, 0
	for _, l := range c.levels {
		var m moments
		l.set.Locked(func(queue.Usage, queue.Progress) { m = l.demand.reset(c.now()) })
		l.stats.update(m)
		if l.exempt {
			l.current = max(l.lowest, l.stats.peak)
			left -= l.current
			continue
		}
		need := l.need()
		l.target = max(float64(need), l.stats.smoothed)
		limited = append(limited, l)
		claims = append(claims, claim{l.target, float64(need), float64(l.highest)})
		lowest += l.lowest
		least += need
	}
	c.fair = 0
	switch {
	case left <= lowest:
		for _, l := range limited {
			l.current = l.lowest
		}
	case left <= least:
		part := float64(left-lowest) / float64(least-lowest)
		for _, l := range limited {
			l.current = l.lowest + int(math.Round(float64(l.need()-l.lowest)*part))
		}
	default:
		// As in kube-apiserver, the sum includes the seats of the exempt levels.
		parts, fair, ok := allocate(float64(c.nominal), claims)
		c.fair = fair
		for i, l := range limited {
			if ok {
				l.current = int(math.Round(parts[i]))
			}
		}
	}
	for _, l := range c.levels {
		c.apply(l)
	}
}

// need returns the minimum seats of a level: max(non-lendable seats, min(nominal, peak demand)).
func (l *levelState) need() int { return max(l.lowest, min(l.nominal, l.stats.peak)) }

// apply sets the seats of a level.
func (c *Controller) apply(l *level) {
	l.set.Configure(l.config, l.current)
	of := float64(l.current)
	if l.current <= 0 {
		of = max(1, math.Round(float64(c.total)/10))
	}
	waits := float64(max(l.config.Length, 1))
	if l.config.Queues > 0 {
		waits *= float64(l.config.Queues)
	}
	now := c.now()
	l.set.Locked(func(queue.Usage, queue.Progress) {
		l.demandUse.bound(now, of)
		l.seatUse.bound(now, of)
		l.runUse.bound(now, of)
		l.waitUse.bound(now, waits)
	})
}

// leastTarget replaces smaller targets, to avoid a division by zero.
const leastTarget = 0.001

// tiny is the tolerance for comparing sums.
const tiny = 1e-7

// allocate divides sum into parts, one for each claim. Each part is fair times the claim's target, clamped to the
// claim's bounds. ok is false if the bounds make that impossible.
func allocate(sum float64, claims []claim) (parts []float64, fair float64, ok bool) {
	parts = make([]float64, len(claims))
	low, high, corners := 0.0, 0.0, make([]float64, 0, 2*len(claims))
	for _, c := range claims {
		if c.lowest < 0 || c.target < c.lowest || c.highest < c.lowest {
			return nil, 0, false
		}
		low, high = low+c.lowest, high+c.highest
		corners = append(corners, c.lowest/max(c.target, leastTarget), c.highest/max(c.target, leastTarget))
	}
	if sum < 0 || low-sum > tiny || sum-high > tiny {
		return nil, 0, false
	}
	if sum == 0 {
		return parts, 0, true
	}
	fill := func(fair float64) (total float64) {
		for i, c := range claims {
			parts[i] = min(max(c.lowest, fair*max(c.target, leastTarget)), c.highest)
			total += parts[i]
		}
		return total
	}
	// Between two corners the total is linear: find the last corner below the sum and interpolate from there.
	slices.Sort(corners)
	at, _ := slices.BinarySearchFunc(corners, sum, func(corner, sum float64) int {
		if fill(corner) < sum-tiny {
			return -1
		}
		return 1
	})
	if at == 0 || at == len(corners) {
		fair = corners[min(at, len(corners)-1)]
		fill(fair)
		return parts, fair, true
	}
	from, to := corners[at-1], corners[at]
	below, above := fill(from), fill(to)
	fair = to
	if above > below {
		fair = from + (to-from)*(sum-below)/(above-below)
	}
	fill(fair)
	return parts, fair, true
}
