package control

import (
	"time"
)

// untilFree returns how long a replica must wait before it may take the Lease; 0 or less means that it may now. last is
// the duration of a Lease without leaseDurationSeconds.
func untilFree(s sighting, identity string, last time.Duration, now time.Time) time.Duration {
	if s.lease == nil {
		return 0
	}
	holder := text(s.lease.Spec.HolderIdentity)
	if holder == "" || holder == identity {
		return 0
	}
	if d := s.lease.Spec.LeaseDurationSeconds; d != nil {
		last = time.Duration(*d) * time.Second
	}
	return s.at.Add(last).Sub(now)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
