package bowsprit

import (
	"time"

	"github.com/bowsprit/bowsprit/internal/request/charge"
)

// LimitsConfig says how long things may take, how many there may be, and how long they last.
type LimitsConfig struct {
	// RequestTimeout is how long a request may take that is not long-running, a minute if zero.
	RequestTimeout time.Duration
	// MinRequestTimeout is the shortest life of a watch whose client sets none; up to as much again is added at random.
	// 30 minutes if zero.
	MinRequestTimeout time.Duration
	// MaxRequestsInFlight and MaxMutatingRequestsInFlight are how many reads and writes may run at a time, 400 and 200
	// if zero; less than zero is no limit. Others get 429. With PriorityAndFairness they are together how many seats
	// the server has, which it shares out among requests.
	MaxRequestsInFlight, MaxMutatingRequestsInFlight int
	// PriorityAndFairness has FlowSchemas and PriorityLevelConfigurations say which requests run and which wait; nil is
	// true. Without it only the numbers of reads and writes are limited.
	PriorityAndFairness *bool
	// RequestMemory is how much memory, in MiB, the larger requests under way may take together, by estimate; others
	// get 429. If zero it is a quarter of the memory that the process may use, 320 at the least and 1024 at the most.
	RequestMemory int
	// EventTTL is how long events live after their last write, an hour if zero; less than zero is forever.
	EventTTL time.Duration
	// NotReadyTolerationSeconds and UnreachableTolerationSeconds are how long the plugin DefaultTolerationSeconds lets
	// pods stay on a node that is not ready or cannot be reached, 300 each if nil.
	NotReadyTolerationSeconds, UnreachableTolerationSeconds *int64
}

func (c *LimitsConfig) settings() []Setting {
	for _, seconds := range []**int64{&c.NotReadyTolerationSeconds, &c.UnreachableTolerationSeconds} {
		if *seconds == nil {
			*seconds = new(int64(300))
		}
	}
	return []Setting{
		{
			Name: "request-timeout", Help: "how long a request may take, but for watches and the like",
			Value: &c.RequestTimeout, Default: time.Minute,
		},
		{
			Name:  "min-request-timeout",
			Help:  "shortest life of a watch whose client sets none, in seconds; up to as much again is added",
			Value: &c.MinRequestTimeout, Default: 30 * time.Minute, Form: Seconds,
		},
		{
			Name: "enable-priority-and-fairness",
			Help: "have FlowSchemas and PriorityLevelConfigurations say which requests run and which wait; " +
				"without, only the numbers of reads and writes are limited (default true)",
			Value: &c.PriorityAndFairness,
		},
		{
			Name: "max-requests-inflight",
			Help: "how many reads may run at a time, 0 for no limit; with --enable-priority-and-fairness part of the " +
				"number of seats that requests share",
			Value: &c.MaxRequestsInFlight, Default: 400, Form: Bounded,
		},
		{
			Name: "max-mutating-requests-inflight",
			Help: "how many writes may run at a time, 0 for no limit; with --enable-priority-and-fairness part of the " +
				"number of seats that requests share",
			Value: &c.MaxMutatingRequestsInFlight, Default: 200, Form: Bounded,
		},
		{
			Name: "max-requests-memory", Only: Serve,
			Help: "memory in MiB that large requests under way may take together, by estimate; others get 429 " +
				"(default a quarter of the memory that the server may use, 320 to 1024)",
			Value: &c.RequestMemory,
		},
		{
			Name: "event-ttl", Help: "how long events live after their last write, 0 for ever",
			Value: &c.EventTTL, Default: time.Hour, Form: Bounded,
		},
		{
			Name:  "default-not-ready-toleration-seconds",
			Help:  "how long pods stay on a node that is not ready, if they say nothing",
			Value: c.NotReadyTolerationSeconds, Default: int64(300),
		},
		{
			Name:  "default-unreachable-toleration-seconds",
			Help:  "how long pods stay on a node that cannot be reached, if they say nothing",
			Value: c.UnreachableTolerationSeconds, Default: int64(300),
		},
	}
}

func (c *LimitsConfig) validate(p *problems) {
	if c.RequestTimeout < 0 {
		p.add("--request-timeout %s is negative: use a duration such as 1m", c.RequestTimeout)
	}
	if c.RequestMemory != 0 && c.RequestMemory < charge.Least>>20 {
		p.add("--max-requests-memory %d is less than %d, which the largest bodies of two users take: use more, or 0 for "+
			"the default", c.RequestMemory, charge.Least>>20)
	}
	if c.fair() && c.seats() <= 0 {
		p.add("--max-requests-inflight and --max-mutating-requests-inflight add up to nothing: priority and fairness " +
			"needs seats to share; use a number, or --enable-priority-and-fairness=false")
	}
	if c.MinRequestTimeout < 0 {
		p.add("--min-request-timeout %d is negative: use a number of seconds", c.MinRequestTimeout/time.Second)
	}
}

// fair reports whether there is priority and fairness.
func (c *LimitsConfig) fair() bool { return c.PriorityAndFairness == nil || *c.PriorityAndFairness }

// seats is how many seats requests share.
func (c *LimitsConfig) seats() int {
	reads, writes := c.MaxRequestsInFlight, c.MaxMutatingRequestsInFlight
	if reads == 0 {
		reads = 400
	}
	if writes == 0 {
		writes = 200
	}
	return max(reads, 0) + max(writes, 0)
}
