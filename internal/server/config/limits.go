package config

import (
	"cmp"
	"time"

	"github.com/bowsprit/bowsprit/internal/request/charge"
)

// Limits configures timeouts, lifetimes and maximum numbers.
type Limits struct {
	// RequestTimeout bounds the duration of requests that are not long-running, a minute by default.
	RequestTimeout time.Duration
	// MinRequestTimeout is the shortest life of a watch without a timeout of its own; the server adds up to the same
	// time at random. The default is 30 minutes.
	MinRequestTimeout time.Duration
	// MaxRequestsInFlight and MaxMutatingRequestsInFlight bound the reads and writes that run at a time, 400 and 200 by
	// default; a negative value means no limit. Further requests get 429. With PriorityAndFairness their sum is the
	// number of seats that the server shares out among requests.
	MaxRequestsInFlight, MaxMutatingRequestsInFlight int
	// PriorityAndFairness lets FlowSchemas and PriorityLevelConfigurations decide which requests run and which wait;
	// nil means true. Without it only the numbers of reads and writes are limited.
	PriorityAndFairness *bool
	// RequestMemory bounds the memory, in MiB, that the larger requests under way may take together, by estimate;
	// further ones get 429. The default is a quarter of the memory that the process may use, at least 320 and at most
	// 1024.
	RequestMemory int
	// EventTTL is how long events live after their last write, an hour if zero; less than zero is forever.
	EventTTL time.Duration
	// NotReadyTolerationSeconds and UnreachableTolerationSeconds are the time for which the plugin
	// DefaultTolerationSeconds lets pods stay on a node that is not ready or unreachable, 300 each if nil.
	NotReadyTolerationSeconds, UnreachableTolerationSeconds *int64
}

// The defaults of limits are kube-apiserver's.
const (
	defaultRequestTimeout    = time.Minute
	defaultMinRequestTimeout = 30 * time.Minute
	defaultReads             = 400
	defaultWrites            = 200
	defaultEventTTL          = time.Hour
	defaultTolerationSeconds = int64(300)
)

func (c *Limits) setDefaults() {
	c.RequestTimeout = cmp.Or(c.RequestTimeout, defaultRequestTimeout)
	c.MinRequestTimeout = cmp.Or(c.MinRequestTimeout, defaultMinRequestTimeout)
	c.MaxRequestsInFlight = cmp.Or(c.MaxRequestsInFlight, defaultReads)
	c.MaxMutatingRequestsInFlight = cmp.Or(c.MaxMutatingRequestsInFlight, defaultWrites)
	c.PriorityAndFairness = cmp.Or(c.PriorityAndFairness, new(true))
	c.EventTTL = cmp.Or(c.EventTTL, defaultEventTTL)
	c.NotReadyTolerationSeconds = cmp.Or(c.NotReadyTolerationSeconds, new(defaultTolerationSeconds))
	c.UnreachableTolerationSeconds = cmp.Or(c.UnreachableTolerationSeconds, new(defaultTolerationSeconds))
}

func (c *Limits) settings() []Setting {
	for _, seconds := range []**int64{&c.NotReadyTolerationSeconds, &c.UnreachableTolerationSeconds} {
		*seconds = cmp.Or(*seconds, new(defaultTolerationSeconds))
	}
	return []Setting{
		{
			Name: "request-timeout", Help: "maximum duration of requests, except watches and other long-running ones",
			Value: &c.RequestTimeout, Default: defaultRequestTimeout,
		},
		{
			Name:  "min-request-timeout",
			Help:  "minimum duration of watches without a timeout, in seconds; a random part of up to the same duration is added",
			Value: &c.MinRequestTimeout, Default: defaultMinRequestTimeout, Form: Seconds,
		},
		{
			Name: "enable-priority-and-fairness",
			Help: "schedule requests by FlowSchemas and PriorityLevelConfigurations; " +
				"otherwise only the numbers of reads and writes are limited (default true)",
			Value: &c.PriorityAndFairness,
		},
		{
			Name: "max-requests-inflight",
			Help: "maximum number of concurrent reads, 0 for no limit; with --enable-priority-and-fairness part of the " +
				"number of seats that requests share",
			Value: &c.MaxRequestsInFlight, Default: defaultReads, Form: Bounded,
		},
		{
			Name: "max-mutating-requests-inflight",
			Help: "maximum number of concurrent writes, 0 for no limit; with --enable-priority-and-fairness part of the " +
				"number of seats that requests share",
			Value: &c.MaxMutatingRequestsInFlight, Default: defaultWrites, Form: Bounded,
		},
		{
			Name: "max-requests-memory", Only: Serve,
			Help: "estimated memory in MiB of all large running requests; further requests get 429 " +
				"(default a quarter of the memory that the server may use, 320 to 1024)",
			Value: &c.RequestMemory,
		},
		{
			Name: "event-ttl", Help: "how long events live after their last write, 0 for ever",
			Value: &c.EventTTL, Default: defaultEventTTL, Form: Bounded,
		},
		{
			Name:  "default-not-ready-toleration-seconds",
			Help:  "default toleration of pods for a node that is not ready",
			Value: c.NotReadyTolerationSeconds, Default: defaultTolerationSeconds,
		},
		{
			Name:  "default-unreachable-toleration-seconds",
			Help:  "default toleration of pods for a node that cannot be reached",
			Value: c.UnreachableTolerationSeconds, Default: defaultTolerationSeconds,
		},
	}
}

func (c *Limits) validate(p *problems) {
	if c.RequestTimeout < 0 {
		p.add("--request-timeout %s is negative: use a duration such as 1m", c.RequestTimeout)
	}
	if c.RequestMemory != 0 && c.RequestMemory < charge.Least>>20 {
		p.add("--max-requests-memory %d is less than %d, which the largest bodies of two users take: use more, or 0 for "+
			"the default", c.RequestMemory, charge.Least>>20)
	}
	complete := *c
	complete.setDefaults()
	if *complete.PriorityAndFairness && Seats(&complete) <= 0 {
		p.add("--max-requests-inflight and --max-mutating-requests-inflight add up to nothing: priority and fairness " +
			"needs seats to share; use a number, or --enable-priority-and-fairness=false")
	}
	if c.MinRequestTimeout < 0 {
		p.add("--min-request-timeout %d is negative: use a number of seconds", c.MinRequestTimeout/time.Second)
	}
}

// Seats returns the number of seats that requests share with priority and fairness. A negative number of reads or
// writes, which means no limit, adds none.
func Seats(c *Limits) int {
	return max(c.MaxRequestsInFlight, 0) + max(c.MaxMutatingRequestsInFlight, 0)
}
