package config

import (
	"cmp"
	"time"
)

// Coordination configures the election of the server that elects leaders among LeaseCandidates. It has no effect
// unless API.CoordinatedLeaderElection is on.
type Coordination struct {
	// LeaseDuration is the time without renewal after which another server takes over, 15 seconds by default;
	// RenewDeadline is the time after which a server that cannot renew gives up, 10 seconds by default, and RetryPeriod
	// the interval of renewals, 2 seconds by default.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// The default times of coordinated leader election are kube-apiserver's.
const (
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 2 * time.Second
)

func (c *Coordination) setDefaults() {
	c.LeaseDuration = cmp.Or(c.LeaseDuration, defaultLeaseDuration)
	c.RenewDeadline = cmp.Or(c.RenewDeadline, defaultRenewDeadline)
	c.RetryPeriod = cmp.Or(c.RetryPeriod, defaultRetryPeriod)
}

func (c *Coordination) settings() []Setting {
	return []Setting{
		{
			Name:  "coordinated-leadership-lease-duration",
			Help:  "with CoordinatedLeaderElection and several servers: how long a silent leader of the election is kept",
			Value: &c.LeaseDuration, Default: defaultLeaseDuration,
		},
		{
			Name:  "coordinated-leadership-renew-deadline",
			Help:  "how long the leader of the election tries to renew its lease before it gives up",
			Value: &c.RenewDeadline, Default: defaultRenewDeadline,
		},
		{
			Name: "coordinated-leadership-retry-period", Help: "how often it renews the lease",
			Value: &c.RetryPeriod, Default: defaultRetryPeriod,
		},
	}
}

func (c *Coordination) validate(p *problems) {
	t := *c
	t.setDefaults()
	switch {
	case t.RetryPeriod < 0:
		p.add("--coordinated-leadership-retry-period %s is negative: use a duration such as 2s", t.RetryPeriod)
	case t.LeaseDuration <= t.RenewDeadline:
		p.add("--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline")
	case t.RenewDeadline <= t.RetryPeriod:
		p.add("--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period")
	}
}
