package bowsprit

import (
	"time"

	"github.com/bowsprit/bowsprit/internal/feature/replicas/candidates"
)

// CoordinationConfig configures the election of the server that elects leaders among LeaseCandidates. It has no effect
// unless APIConfig.CoordinatedLeaderElection is on.
type CoordinationConfig struct {
	// LeaseDuration is the time without renewal after which another server takes over, 15 seconds by default;
	// RenewDeadline is the time after which a server that cannot renew gives up, 10 seconds by default, and RetryPeriod
	// the interval of renewals, 2 seconds by default.
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
