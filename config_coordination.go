package bowsprit

import (
	"time"

	"github.com/bowsprit/bowsprit/internal/feature/replicas/candidates"
)

// CoordinationConfig says how one of several servers comes to elect leaders among LeaseCandidates. It means nothing
// unless APIConfig.CoordinatedLeaderElection is on.
type CoordinationConfig struct {
	// LeaseDuration is how long replicas wait for the one that elects before another does it, 15 seconds if zero;
	// RenewDeadline is after how long one gives up that cannot tell the others that it is there, 10 seconds, and
	// RetryPeriod how often it tells them, 2 seconds.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

func (c *CoordinationConfig) settings() []Setting {
	byDefault := candidates.Times{}.WithDefaults()
	return []Setting{
		{
			Name:  "coordinated-leadership-lease-duration",
			Help:  "with CoordinatedLeaderElection and several servers: how long to wait for the one that elects before another does it",
			Value: &c.LeaseDuration, Default: byDefault.LeaseDuration,
		},
		{
			Name:  "coordinated-leadership-renew-deadline",
			Help:  "after how long the one that elects gives up, if it cannot tell the others that it is there",
			Value: &c.RenewDeadline, Default: byDefault.RenewDeadline,
		},
		{
			Name: "coordinated-leadership-retry-period", Help: "how often it tells them",
			Value: &c.RetryPeriod, Default: byDefault.RetryPeriod,
		},
	}
}

func (c *CoordinationConfig) validate(p *problems) {
	switch t := c.times(); {
	case t.RetryPeriod < 0:
		p.add("--coordinated-leadership-retry-period %s is negative: use a duration such as 2s", t.RetryPeriod)
	case t.LeaseDuration <= t.RenewDeadline:
		p.add("--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline")
	case t.RenewDeadline <= t.RetryPeriod:
		p.add("--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period")
	}
}

func (c *CoordinationConfig) times() candidates.Times {
	return candidates.Times{
		LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod,
	}.WithDefaults()
}
